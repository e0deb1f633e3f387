//! The study of `examples/study` in Rust: a model plans, functions look up and approve. The model is a script, whose
//! dirty XML is repaired, and whose wrong draft is fed back. It differs from that study: functions stand for the workers in
//! Python and for the person who approves, and without a journal nothing survives the end of the process.

use systole::prelude::*;

const STUDY: &str = "urn:example:study:v1";

/// Asks what costs less.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY, reply = Report)]
struct Question(String);

/// Asks for the notes about one subject.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY, reply = Notes)]
struct Search(String);

/// The notes that were found.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY)]
struct Notes(String);

/// Asks for the approval of an answer.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY, reply = Verdict)]
struct Draft {
    text: String,
    euros: u32,
}

/// Says whether a draft is approved.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY)]
struct Verdict(bool);

/// The approved answer.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = STUDY)]
struct Report {
    text: String,
    euros: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let llm = Llm::scripted([
        (
            "<question",
            "I'll look both up:\n```xml\n<search>gas boiler & fuel</search>\n<search>heat pump</search>\n```",
        ),
        ("<notes", "<draft><text>A heat pump costs less.</text><euros>about 2,700</euros></draft>"),
        ("'about 2,700'", "<draft><text>A heat pump costs less & is new.<euros>2700</euros></draft>"),
        ("<verdict", "Approved! <report><text>A heat pump costs less.<euros>2700</report>"),
    ]);
    let organism = Organism::builder("study")
        .budget("tokens=20000 calls=12".parse()?)
        .model("planner", &llm, "Answer by notes, and let each draft be approved.", |c| {
            c.answers::<Question>().calls::<Search>().calls::<Draft>()
        })
        .on("library", async |search: Delivery<Search>| {
            let note = if search.0.contains("pump") { "15000, and 950 a year" } else { "9000, and 1820 a year" };
            Ok(Notes(format!("{note}, in euros")))
        })
        .on("editor", async |draft: Delivery<Draft>| Ok(Verdict(draft.euros == 10 * (1820 - 950) - (15000 - 9000))))
        .client("cli", |c| c.calls::<Question>())
        .start()?;
    let question = Question("Which costs less in ten years: a gas boiler or a heat pump?".into());
    let Report { text, euros } = block_on(organism.client("cli")?.ask(question))?;
    println!("{text} ({euros} euros)");
    assert_eq!((&*text, euros), ("A heat pump costs less.", 2700));
    Ok(())
}
