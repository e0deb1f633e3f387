//! Fragments of Rust of the pages: they compile, word by word, with what the pages leave out around them. None of them runs.

#![allow(dead_code, unused_variables, reason = "the fragments only compile")]

use std::error::Error;
use std::fs;
use std::path::Path;

use systole::inbox::payload::{Complete, ResultPayload, Submit};
use systole::jobs::Job;
use systole::journal::Durability;
use systole::prelude::*;
use systole::settings::LlmSettings;
use systole::vocab::TaskId;

/// Asks for a plan, or for leave.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:pages:v1", reply = Plan)]
struct Task(String);

/// A plan.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:pages:v1")]
struct Plan(String);

/// Asks for a distance.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:pages:v1", reply = Plan)]
struct Distance(String);

async fn fetch() -> f64 {
    1.5
}

#[rustfmt::skip]
async fn journal(client: &Client, thread: &Thread, request: Task) -> Result<(), Box<dyn Error>> {
    let builder = Organism::builder("office").durable("office.journal", Durability::Process); // start it again with the same file
    client.post(request).await?;                            // returns when the request is durable
    let rate: f64 = thread.record("rate", fetch()).await?;  // recorded once; a re-run gets the recorded value
    Ok(())
}

#[rustfmt::skip]
fn model(settings: LlmSettings) -> Result<(), Box<dyn Error>> {
    let llm = Llm::open(&settings)?;         // or Llm::scripted([("<task", "<plan>…")]), Llm::new(Strategy::Failover).backend(backend, || provider)
    let builder = Organism::builder("trips")
        .model("planner", &llm, "Plan trips.", |c| {         // or ModelSettings::from("Plan trips.").tries(5)
            c.description("Plans trips.").answers::<Task>().calls::<Distance>()
        });
    Ok(())
}

#[rustfmt::skip]
async fn tasks(thread: &Thread, id: TaskId) -> Result<(), Box<dyn Error>> {
    let reviews = Job::new("reviews", "reviewer")?;                      // the listener, and the owner of its inbox
    let builder = reviews.install(Organism::builder("office"));
    // A submitter: the answer comes when the task has ended.
    let result = thread.call_any(call_to("reviews", Submit::new("Read chapter 3."))).await?.decode::<ResultPayload>()?;
    // The owner: Markdown for its model, in which no sender can pose as the pump; then the transitions of each task.
    let page = reviews.render_pending_context();
    thread.call_to("reviews", Complete { id, text: "Two typos.".into() }).await?;
    Ok(())
}

/// The test of `docs/simulated-time.md`.
#[rustfmt::skip]
mod simulated_time {
    use std::time::Duration;

    use systole::prelude::*;
    use systole::testing::{Kit, Probe};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
    #[payload(namespace = "urn:example:calculator:v1", reply = Sum)]
    struct Add { a: i64, b: i64 }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
    #[payload(namespace = "urn:example:calculator:v1")]
    struct Sum { value: i64 }

    #[test]
    fn a_calculator_that_does_not_answer_times_out() -> Result<(), Box<dyn std::error::Error>> {
        let calculator = Probe::<Add>::new();
        let kit = Kit::start(
            Organism::builder("tested")
                .listener("calculator", calculator.factory(), |c| c.answers::<Add>())
                .client("cli", |c| c.calls::<Add>()),
        )?;
        kit.client("cli").tell(Add { a: 1, b: 2 })?;
        kit.settle();
        assert_eq!(calculator.received(), [Add { a: 1, b: 2 }]);
        assert_eq!(kit.tree(), "root\n  calculator\n");

        // No answer comes: the handler's timeout passes.
        kit.advance(Duration::from_secs(30));
        let fault = kit.client("cli").try_receive().and_then(|egress| egress.fault);
        assert_eq!(fault.map(|fault| fault.code), Some(FaultCode::Timeout));

        calculator.reply_with(|add| Sum { value: add.a + add.b });
        assert_eq!(kit.ask("cli", Add { a: 1, b: 2 })?, Sum { value: 3 });
        Ok(())
    }
}

/// Lines without their indentation.
fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_fragment_of_rust_is_one_that_compiles() {
    let here = lines(include_str!("pages.rs"));
    let mut compared = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap() {
        let path = entry.unwrap().path();
        let Some("md") = path.extension().and_then(|extension| extension.to_str()) else { continue };
        let page = fs::read_to_string(&path).unwrap();
        for (_, fragment) in crate::guide::blocks(&page).into_iter().filter(|(language, _)| *language == "rust") {
            // `scripts/outside` builds and runs whole programs.
            if fragment.contains("fn main()") {
                continue;
            }
            assert!(here.contains(&lines(fragment)), "{}: a fragment is not in pages.rs:\n{fragment}", path.display());
            compared += 1;
        }
    }
    assert!(compared >= 4, "only {compared} fragments found: the search is broken");
}
