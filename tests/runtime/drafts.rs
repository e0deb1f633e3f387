//! Drafts of functions and models, as a program reads them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::drafts::{DraftNews, Drafts};
use systole::model::{Again, Completion, Finish, Growth, Llm, ModelPrompt, Provider, Setback};
use systole::outbound::retry::Policy;
use systole::prelude::*;
use systole::runtime::{Client, Conversation, LocalBoxFuture};
use systole::settings::{Backend, ModelSettings, Rule, Strategy};
use systole::testing::Kit;
use systole::vocab::{Limits, Name};

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:stories:v1", reply = Story)]
struct Wish {
    about: String,
}

/// A story.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:stories:v1")]
struct Story {
    text: String,
}

/// A piece of news in short: the attempt, and the text with its offset or the end.
fn short(news: &DraftNews) -> (u32, String) {
    match news {
        DraftNews::Text { of, from, text } => (of.attempt, format!("{from}:{text}")),
        DraftNews::Gone { of, why } => (of.attempt, format!("{why:?}")),
        other => panic!("{other:?}"),
    }
}

async fn next(drafts: &mut Drafts) -> (u32, String) {
    short(&drafts.next().await.expect("it goes on").news)
}

fn text(attempt: u32, text: &str) -> (u32, String) {
    (attempt, text.to_owned())
}

fn wish(client: &Client, about: &str) -> (Conversation, Drafts) {
    let mut conversation = client.converse();
    let drafts = conversation.drafts();
    let message = format!("<wish xmlns='urn:example:stories:v1'><about>{about}</about></wish>");
    conversation.send_last(message.into_bytes()).unwrap();
    (conversation, drafts)
}

/// Writes a story word by word, a word a second.
async fn tell(wish: Delivery<Wish>) -> Result<Story, Failure> {
    let words = ["Once ", "upon ", "a ", "time"];
    for word in words {
        wish.thread().draft(word);
        actix::clock::sleep(Duration::from_secs(1)).await;
    }
    match &*wish.about {
        "nothing" => return Err(Failure::new("no story")),
        "panic" => panic!("no story"),
        "anew" => {
            wish.thread().redraft();
            wish.thread().draft("The end");
            actix::clock::sleep(Duration::from_secs(1)).await;
        }
        _ => {}
    }
    Ok(Story { text: words.concat() })
}

fn teller() -> Kit {
    let builder = Organism::builder("stories").on("teller", tell).client("cli", |c| c.calls::<Wish>());
    Kit::start(builder).unwrap()
}

#[test]
fn a_function_shows_what_it_writes_until_its_answer_is_there() {
    let kit = teller();
    let client = kit.client("cli");
    kit.block_on(async {
        let (mut conversation, mut drafts) = wish(&client, "a king");
        for word in ["0:Once ", "5:upon ", "10:a ", "12:time"] {
            assert_eq!(next(&mut drafts).await, text(1, word));
        }
        assert!(conversation.try_receive().is_none());
        let answer = conversation.receive().await.unwrap();
        assert!(answer.payload.as_str().contains("Once upon a time"));
        // The draft was gone before.
        assert_eq!(short(&drafts.try_next().unwrap().news), text(1, "Answered"));
        assert!(drafts.next().await.is_none(), "the conversation has ended");
    });
}

#[test]
fn a_draft_that_comes_to_nothing_is_told() {
    for (about, ends) in [
        ("nothing", vec![text(1, "Ended")]),
        ("panic", vec![text(1, "Ended")]),
        ("anew", vec![text(1, "Retried"), text(2, "0:The end"), text(2, "Answered")]),
    ] {
        let kit = teller();
        let client = kit.client("cli");
        let found = kit.block_on(async {
            let (_conversation, mut drafts) = wish(&client, about);
            let mut found = Vec::new();
            while let Some(record) = drafts.next().await {
                found.push(short(&record.news));
            }
            found
        });
        assert_eq!(found[4..], ends, "{about}");
    }
}

#[test]
fn a_draft_ends_with_its_conversation_and_its_organism() {
    let kit = teller();
    let client = kit.client("cli");
    let (conversation, mut drafts) = kit.block_on(async {
        let (conversation, mut drafts) = wish(&client, "a king");
        assert_eq!(next(&mut drafts).await, text(1, "0:Once "));
        (conversation, drafts)
    });
    let id = conversation.id();
    let mut other = kit.block_on(kit.organism().drafts(id, None));
    assert_eq!(kit.block_on(next(&mut other)), text(1, "0:Once "));
    conversation.cancel();
    assert_eq!(kit.block_on(next(&mut drafts)), text(1, "Ended"));
    kit.block_on(async {
        assert!(drafts.next().await.is_none() && next(&mut other).await.1 == "Ended" && other.next().await.is_none());
        let mut late = kit.organism().drafts(id, None).await;
        assert!(late.next().await.is_none(), "there is no such conversation any more");
    });
    let (_conversation, mut drafts) = kit.block_on(async {
        let (conversation, mut drafts) = wish(&client, "a queen");
        next(&mut drafts).await;
        (conversation, drafts)
    });
    drop(kit);
    let rest: Vec<_> = block_on(async {
        let mut rest = Vec::new();
        while let Some(record) = drafts.next().await {
            rest.push(short(&record.news));
        }
        rest
    });
    assert_eq!(rest, [text(1, "Ended")]);
}

#[test]
fn drafts_are_bounded_and_can_be_turned_off() {
    let start = |limits: Limits| {
        let builder = Organism::builder("stories").limits(limits).on("teller", tell);
        Kit::start(builder.client("cli", |c| c.calls::<Wish>())).unwrap()
    };
    let kit = start(Limits::default().draft_bytes(30));
    let client = kit.client("cli");
    kit.block_on(async {
        let (mut conversation, mut drafts) = wish(&client, "a king");
        actix::clock::sleep(Duration::from_millis(3500)).await;
        let (_, found) = next(&mut drafts).await;
        assert!(found.ends_with("time") && !found.starts_with("0:"), "{found}");
        conversation.receive().await.unwrap();
    });
    let kit = start(Limits::default().draft_total_bytes(0));
    let client = kit.client("cli");
    kit.block_on(async {
        let (mut conversation, mut drafts) = wish(&client, "a king");
        conversation.receive().await.unwrap();
        assert!(drafts.next().await.is_none());
    });
}

#[test]
fn a_model_that_is_refused_begins_another_draft() {
    let pace = Duration::from_millis(100);
    let rules = [
        Rule::default().when(vec!["<about>".to_owned()]).answer("I know none.").pace(pace),
        // The turn that tells of the refusal.
        Rule::default().answer("<story><text>Once upon</text></story>").pace(pace),
    ];
    let llm = Llm::scripted(rules);
    let builder = Organism::builder("stories")
        .model("teller", &llm, ModelSettings::default().instructions("Tell stories."), |c| {
            c.accepts::<Wish>().replies::<Story>()
        })
        .client("cli", |c| c.calls::<Wish>());
    let kit = Kit::start(builder).unwrap();
    let client = kit.client("cli");
    let found = kit.block_on(read(&client));
    assert_eq!(
        found,
        [
            text(1, "0:I"),
            text(1, "1: know"),
            text(1, "6: none."),
            text(1, "Refused"),
            text(2, "0:<story><text>Once"),
            text(2, "17: upon</text></story>"),
            text(2, "Answered"),
        ]
    );
}

/// All news on the drafts of one wish.
async fn read(client: &Client) -> Vec<(u32, String)> {
    let (mut conversation, mut drafts) = wish(client, "a king");
    let mut found = Vec::new();
    while let Some(record) = drafts.next().await {
        found.push(short(&record.news));
    }
    assert!(conversation.receive().await.is_some());
    found
}

/// A provider whose answers grow, in these steps.
#[derive(Clone)]
struct Growing(Arc<Mutex<VecDeque<Vec<&'static str>>>>);

impl Provider for Growing {
    fn ask(&self, _: &ModelPrompt, growth: &Growth) -> LocalBoxFuture<Result<Completion, Setback>> {
        let (steps, growth) = (self.0.lock().unwrap().pop_front().unwrap(), growth.clone());
        Box::pin(async move {
            let mut last = "";
            for step in steps {
                growth.thinks();
                growth.show(step);
                actix::clock::sleep(Duration::from_millis(10)).await;
                last = step;
            }
            if !last.ends_with("</story>") {
                return Err(Setback::new("it broke off", Again::Later(None)));
            }
            let (finish, usage) = (Finish::Whole, systole::core::Usage::default());
            Ok(Completion { text: last.to_owned(), finish, model: "growing".to_owned(), usage })
        })
    }
}

#[test]
fn an_attempt_that_breaks_off_begins_another_draft() {
    let whole = "<story><text>é</text></story>";
    let steps = [vec!["", "<sto", "<story>"], vec!["<st", whole]];
    let growing = Growing(Arc::new(Mutex::new(steps.into())));
    let llm = Llm::new(Strategy::Failover)
        .backend(Backend::new(Name::parse("main").unwrap()), move || growing.clone())
        .retry(Policy::default().attempts(4).jitter(0.0));
    let builder = Organism::builder("stories")
        .model("teller", &llm, ModelSettings::default(), |c| c.accepts::<Wish>().replies::<Story>())
        .client("cli", |c| c.calls::<Wish>());
    let kit = Kit::start(builder).unwrap();
    let client = kit.client("cli");
    let found = kit.block_on(read(&client));
    assert_eq!(
        found,
        [
            text(1, "0:<sto"),
            text(1, "4:ry>"),
            text(1, "Retried"),
            text(2, "0:<st"),
            (2, format!("3:{}", &whole[3..])),
            text(2, "Answered"),
        ]
    );
}
