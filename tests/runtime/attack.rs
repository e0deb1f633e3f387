//! Attacks and careless use through the public interface, on a simulated clock.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use systole::actor::*;
use systole::prelude::*;
use systole::testing::{Kit, Probe};

macro_rules! payload {
    ($type:ident, $root:literal) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        struct $type {
            text: String,
        }

        impl Payload for $type {
            const NAMESPACE: &'static str = "urn:example:attack:v1";
            const ROOT: &'static str = $root;
        }
    };
}

payload!(Ask, "ask");
payload!(Told, "told");
payload!(Job, "job");
payload!(Done, "done");

impl Request for Ask {
    type Reply = Told;
}

impl Request for Job {
    type Reply = Done;
}

fn ask(text: &str) -> Ask {
    Ask { text: text.to_owned() }
}

/// A listener that makes as many calls as it is asked for, and joins them.
struct Boss;

impl Actor for Boss {
    type Context = Context<Self>;
}

impl Handler<Delivery<Ask>> for Boss {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, ask: Delivery<Ask>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let (count, size) = ask.text.split_once('*').unwrap_or(("2", "4"));
            let job = Job { text: "x".repeat(size.parse()?) };
            actix::clock::sleep(Duration::from_secs(1)).await;
            let done = ask.thread().call_all(vec![job; count.parse()?], Join::All).await?;
            let length: usize = done.replies().map(|done| done.text.len()).sum();
            Ok(ask.reply(Told { text: length.to_string() }))
        })
    }
}

struct Worker;

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Delivery<Job>> for Worker {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, job: Delivery<Job>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_secs(1)).await;
            Ok(job.reply(Done { text: job.text.clone() }))
        })
    }
}

fn factory(limits: Limits) -> Kit {
    let builder = Organism::builder("factory")
        .limits(limits)
        .listener("boss", || Boss, |c| c.accepts::<Ask>().replies::<Told>().calls::<Job>())
        .listener("worker", || Worker, |c| c.accepts::<Job>().replies::<Done>().concurrency(3))
        .client("cli", |c| c.calls::<Ask>());
    Kit::start(builder).unwrap()
}

/// Checks that nothing is open, nothing waits, and nothing was lost or doubled.
fn check(kit: &Kit) {
    kit.run_until_idle();
    assert_eq!(kit.tree(), "");
    let counts = kit.counts();
    let came = counts.injected + counts.emitted + counts.made + counts.redriven;
    let went = counts.delivered + counts.faulted + counts.dead + counts.cancelled;
    assert_eq!(came, went, "{counts:?}");
}

#[test]
fn a_conversation_that_is_dropped_leaves_nothing_behind() {
    let kit = factory(Limits::default());
    let client = kit.client("cli");
    for round in 0..4 {
        let mut conversation = client.converse();
        match round {
            0 => conversation.send(ask("2*4")).unwrap(),
            1 => conversation.send_bytes("no envelope").unwrap(),
            2 => {
                conversation.send(ask("2*4")).unwrap();
                conversation.cancel();
                check(&kit);
                continue;
            }
            _ => {}
        }
        drop(conversation);
        check(&kit);
        assert_eq!(client.try_receive().map(|egress| egress.envelope), None, "round {round}");
    }
    assert_eq!(kit.snapshot().threads, []);
}

#[test]
fn a_question_may_be_dropped_at_any_of_its_awaits() {
    for polls in 0..12 {
        let kit = factory(Limits::default());
        let client = kit.client("cli");
        let finished = kit.block_on(async {
            let mut question = pin!(client.ask(ask("5*100")));
            for _ in 0..polls {
                if poll_fn(|cx| Poll::Ready(question.as_mut().poll(cx).is_ready())).await {
                    return true;
                }
                actix::clock::sleep(Duration::from_millis(400)).await;
            }
            false
        });
        check(&kit);
        assert!(client.try_receive().is_none(), "dropped after {polls} polls");
        assert_eq!(kit.snapshot().threads, []);
        assert_eq!(finished, polls > 8, "three seconds are {polls} polls");
    }
}

#[test]
fn the_time_that_a_client_gives_may_be_none_or_endless() {
    let kit = factory(Limits::default());
    let timed = |patience| kit.block_on(kit.client("cli").ask(ask("1*1")).within(patience));
    for patience in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1_999)] {
        let asked = timed(patience);
        assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Timeout), "{asked:?}");
    }
    for patience in [Duration::from_secs(3), Duration::from_secs(300 * 365 * 86_400), Duration::MAX] {
        assert_eq!(timed(patience).unwrap().text, "1", "{patience:?}");
    }
    check(&kit);
}

#[test]
fn limits_of_zero_refuse_and_hang_nothing() {
    let zeros: [fn(&mut Limits); 20] = [
        |limits| limits.thread_depth = 0,
        |limits| limits.fanout = 0,
        |limits| limits.mailbox = 0,
        |limits| limits.queue = 0,
        |limits| limits.queue_bytes = 0,
        |limits| limits.conversation_threads = 0,
        |limits| limits.threads = 0,
        |limits| limits.handler_timeout = Duration::ZERO,
        |limits| limits.invalid_responses = 0,
        |limits| limits.turns = 0,
        |limits| limits.repeats = 0,
        |limits| limits.root_idle = Duration::ZERO,
        |limits| limits.egress = 0,
        |limits| limits.egress_bytes = 0,
        |limits| limits.context_messages = 0,
        |limits| limits.context_total_bytes = 0,
        |limits| limits.dead_letters = 0,
        |limits| limits.xml.message_bytes = 0,
        |limits| limits.conversation_messages = 0,
        |limits| limits.conversation_bytes = 0,
    ];
    for (at, zero) in zeros.into_iter().enumerate() {
        let mut limits = Limits::default();
        zero(&mut limits);
        let mut kit = factory(limits);
        let asked = kit.ask("cli", ask("2*4"));
        let harmless = [8, 9, 10, 11, 14, 15, 16].contains(&at);
        assert_eq!(asked.is_ok(), harmless, "limit {at}: {asked:?}");
        check(&kit);
        assert!(kit.drain(Duration::from_secs(1)).ended, "limit {at}");
    }
}

#[test]
fn a_fan_out_of_the_largest_size_is_joined() {
    let kit = factory(Limits::default());
    let told = kit.ask("cli", ask("256*65536")).unwrap();
    assert_eq!(told.text, (256 * 65_536).to_string());
    let asked = kit.ask("cli", ask("257*1"));
    assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Limit), "{asked:?}");
    check(&kit);
}

#[test]
fn a_drain_ends_while_everything_waits() {
    let worker = Probe::<Job>::new();
    let builder = Organism::builder("stuck")
        .listener("boss", || Boss, |c| c.accepts::<Ask>().replies::<Told>().calls::<Job>().concurrency(1))
        .listener("worker", worker.factory(), |c| c.accepts::<Job>().replies::<Done>().no_timeout().concurrency(1))
        .client("cli", |c| c.calls::<Ask>());
    let mut kit = Kit::start(builder).unwrap();
    let client = kit.client("cli");
    let roots: Vec<_> = (0..10).map(|_| client.tell(ask("7*10")).unwrap()).collect();
    kit.advance(Duration::from_secs(20));
    assert_eq!(worker.received().len(), 1, "one job runs, nine bosses wait for seven each");
    let drained = kit.drain(Duration::from_secs(5));
    assert_eq!((drained.idle, drained.ended), (false, true));
    let faults: Vec<_> = std::iter::from_fn(|| client.try_receive()).collect();
    assert!(faults.iter().all(|egress| egress.fault.as_ref().is_some_and(|fault| fault.code == FaultCode::Cancelled)));
    assert_eq!(faults.len(), roots.len(), "one for each conversation");
}

#[test]
fn names_and_concurrency_have_their_limits() {
    let longest = "n".repeat(128);
    let start = |name: &str, concurrency| {
        let builder = Organism::builder("named")
            .listener(name, || Worker, |c| c.accepts::<Job>().replies::<Done>().concurrency(concurrency))
            .client("cli", |c| c.calls::<Job>());
        Kit::start(builder)
    };
    let kit = start(&longest, u32::MAX).unwrap();
    let answer = kit.ask_any("cli", call_to(&longest, Job { text: String::new() })).unwrap();
    assert_eq!(answer.from.as_str(), longest);
    for (name, concurrency) in [(format!("{longest}n"), 1), (longest.clone(), 0), ("core".to_owned(), 1)] {
        assert!(matches!(start(&name, concurrency), Err(StartError::Refused(_))), "{name} {concurrency}");
    }
}
