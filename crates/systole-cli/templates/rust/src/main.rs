//! A listener that is a function, and a program that asks it.

use systole::prelude::*;

/// Asks for the sum of two integers.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:NAME:v1", reply = Sum)]
struct Add {
    a: i64,
    b: i64,
}

/// A sum.
#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:NAME:v1")]
struct Sum {
    value: i64,
}

fn organism() -> Result<Organism, StartError> {
    Organism::builder("NAME")
        .on("calculator", async |add: Delivery<Add>| {
            let value = add.a.checked_add(add.b).ok_or_else(|| Failure::new("the sum is too large"))?;
            Ok(Sum { value })
        })
        .client("cli", |c| c.calls::<Add>())
        .start()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let organism = organism()?;
    // As text, in which the pump finds what to repair; `ask` sends values, as in the test below.
    let mut conversation = organism.client("cli")?.converse();
    conversation.send_bytes(std::fs::read("task.xml")?)?;
    let answer = block_on(conversation.receive()).ok_or("the conversation closed without an answer")?;
    println!("{}", answer.payload.as_str());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added() {
        let organism = organism().unwrap();
        let client = organism.client("cli").unwrap();
        let sum = block_on(client.ask(Add { a: -2, b: 44 })).unwrap();
        assert_eq!(sum.value, 42);
        assert!(block_on(client.ask(Add { a: i64::MAX, b: 1 })).is_err());
    }
}
