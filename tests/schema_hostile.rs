//! Schemas that cost as much as they can: each ends in a grammar or in a sentence. `cargo bench --bench hostile` says in
//! what time, and with how much memory.

mod hostile_schemas;

use std::sync::mpsc;
use std::time::Duration;

use systole::schema::PayloadSchema;

#[test]
fn each_compiles_or_is_refused() {
    for hostile in hostile_schemas::schemas() {
        let (ended, end) = mpsc::channel();
        let name = hostile.name;
        std::thread::spawn(move || {
            let compiled = PayloadSchema::from_xsd_set(&hostile.documents);
            ended.send(compiled.map(|schemas| schemas.len()).map_err(|error| error.to_string()))
        });
        // Far more than it takes, for machines under load and builds without optimization.
        match end.recv_timeout(Duration::from_secs(30)) {
            Ok(Ok(payloads)) => println!("{name}: {payloads} payloads"),
            Ok(Err(error)) => println!("{name}: {}", error.chars().take(160).collect::<String>()),
            Err(error) => panic!("{name}: still compiled after 30 s: {error}"),
        }
    }
}
