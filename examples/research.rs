//! A researcher fans one question out to three calculators and a human stand-in, in parallel,
//! joins their answers and answers itself. At the end it prints the tree of threads.

use std::time::Duration;

use systole::actor::*;
use systole::core::EventKind;
use systole::prelude::*;
use systole::runtime::Observed;

/// A question about the price of something.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:research:v1", reply = Finding)]
struct Question {
    /// The question, in words.
    text: String,
    /// The prices to add up, in cents.
    #[serde(default)]
    prices: Vec<i64>,
}

/// The finding of the researcher.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:research:v1")]
struct Finding {
    /// The answer, in words.
    text: String,
    /// The total, in cents.
    total: i64,
}

/// Adds two integers and returns their sum.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:calculator:v1", reply = Sum)]
struct Add {
    /// Left operand.
    a: i64,
    /// Right operand.
    b: i64,
}

/// The sum of two integers.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:calculator:v1")]
struct Sum {
    /// The sum.
    value: i64,
}

/// Asks a person for an opinion.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:research:v1", reply = View)]
struct Opinion {
    /// The subject.
    about: String,
}

/// The view of a person.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:research:v1")]
struct View {
    /// The view, in words.
    text: String,
}

struct Researcher;

impl Actor for Researcher {
    type Context = Context<Self>;
}

impl Handler<Delivery<Question>> for Researcher {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let additions = question.prices.chunks(2).zip(1..).map(|(pair, n)| {
                let add = Add { a: pair[0], b: pair.get(1).copied().unwrap_or(0) };
                call_to(&format!("calculator-{n}"), add)
            });
            let opinion = call(Opinion { about: question.text.clone() });
            let asked = question.thread().call_all_any(additions.chain([opinion]), Join::All);
            let answers = asked.within(Duration::from_secs(10)).await?;

            let answers: Vec<&Answer> = answers.replies().collect();
            let [sums @ .., view] = &answers[..] else { return Err(Failure::new("nobody answered")) };
            let view: View = view.decode()?;
            let sums: Vec<Sum> = sums.iter().map(|sum| sum.decode()).collect::<Result<_, _>>()?;
            let total = sums.iter().map(|sum| sum.value).sum();
            Ok(question.reply(Finding { text: view.text, total }))
        })
    }
}

struct Calculator;

impl Actor for Calculator {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Calculator {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        Ok(add.reply(Sum { value: add.a + add.b }))
    }
}

/// Stands in for a person, who takes a while.
struct Human;

impl Actor for Human {
    type Context = Context<Self>;
}

impl Handler<Delivery<Opinion>> for Human {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, opinion: Delivery<Opinion>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(20)).await;
            Ok(opinion.reply(View { text: format!("'{}' Too much.", opinion.about) }))
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calculators = ["calculator-1", "calculator-2", "calculator-3"];
    let mut builder = calculators.into_iter().fold(Organism::builder("research"), |builder, name| {
        builder.listener(name, || Calculator, |c| c.answers::<Add>().routing(Routing::Addressed).stateless())
    });
    builder = builder
        .listener(
            "researcher",
            || Researcher,
            |c| c.description("Finds out what things cost.").answers::<Question>().calls::<Add>().calls::<Opinion>(),
        )
        .listener("human", || Human, |c| c.answers::<Opinion>().no_timeout().on_restart(OnRestart::AskAgain))
        .client("cli", |c| c.calls::<Question>());
    let mut events = builder.events();
    let organism = builder.start()?;

    let question = Question { text: "What is lunch?".into(), prices: vec![450, 320, 199, 280, 1] };
    let finding = block_on(organism.client("cli")?.ask(question))?;
    println!("{} ({} cents)", finding.text, finding.total);
    assert_eq!(finding.total, 1250);

    block_on(organism.drain(Duration::from_secs(10)));
    let mut threads = Vec::new();
    while let Some(seen) = events.try_next() {
        if let Observed::Event(event) = seen
            && let EventKind::Opened { .. } = event.kind
        {
            println!("{:indent$}{}", "", event.path, indent = 2 * event.path.segments().len());
            threads.push(event.path.to_string());
        }
    }
    let below = threads.iter().filter(|path| path.starts_with("root/researcher/")).count();
    assert_eq!((threads.len(), below), (6, 4), "a root, the researcher, and four that it asked: {threads:?}");
    Ok(())
}
