//! Mistakes that keep an organism from starting.

use systole::core::BlueprintProblem;
use systole::prelude::*;
use systole::runtime::StartRefusal;

use crate::calculator::*;

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let started = Organism::builder("wrong")
        .listener("no name", || Calculator, |c| c.accepts::<Add>())
        .listener("one", || Calculator, |c| c.accepts::<Add>().replies::<Sum>().calls_element("{urn:x"))
        .listener("two", || Calculator, |c| c.accepts::<Add>().replies::<Sum>().concurrency(0))
        .client("one", |c| c.calls::<Question>())
        .start();
    let Err(StartError::Refused(refusals)) = started else { panic!("{started:?}") };
    let text = StartError::Refused(refusals.clone()).to_string();
    for expected in [
        "'no name' can't name",
        "'one' lists '{urn:x'",
        "'one' and 'two' both accept",
        "'two' has a concurrency of 0",
        "the name 'one' is taken",
        "{urn:example:test:v1}question, which no listener accepts",
    ] {
        assert!(text.contains(expected), "no '{expected}' in: {text}");
    }
    assert!(
        refusals.iter().any(|refusal| matches!(refusal, StartRefusal::Problem(BlueprintProblem::Ambiguous { .. })))
    );
}

#[test]
fn an_organism_runs_without_any_async_runtime() {
    let organism = Organism::builder("plain")
        .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Add>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    let answers: Vec<i64> = (0..10).map(|n| block_on(client.ask(Add { a: n, b: n })).unwrap().value).collect();
    assert_eq!(answers, (0..10).map(|n| 2 * n).collect::<Vec<_>>());
    assert_eq!(block_on(organism.counts()).injected, 10);
    assert!(block_on(organism.drain(std::time::Duration::from_secs(60))).idle);
}

#[test]
fn a_listener_that_can_not_answer_is_warned_of() {
    let start = |replies: bool| {
        let organism = Organism::builder("mute")
            .listener(
                "adder",
                || Calculator,
                move |c| if replies { c.accepts::<Add>().replies::<Sum>() } else { c.accepts::<Add>() },
            )
            .client("ada", |c| c.calls::<Add>())
            .shards(1)
            .start()
            .unwrap();
        organism.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(start(true), [""; 0]);
    assert!(matches!(&start(false)[..], [one] if one.contains("'adder', which accepts it, has no replies")));
}

#[test]
fn an_organism_into_which_no_message_can_come_is_warned_of() {
    let builder =
        || Organism::builder("deaf").listener("adder", || Calculator, |c| c.accepts::<Add>().replies::<Sum>());
    let warnings = |organism: &Organism| organism.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    let deaf = builder().shards(1).start().unwrap();
    assert_eq!(warnings(&deaf), ["no message can ever come in: there is no client, and no listener accepts <boot>"]);
    let heard = builder().client("ada", |c| c.calls::<Add>()).shards(1).start().unwrap();
    assert_eq!(warnings(&heard), [""; 0]);
}
