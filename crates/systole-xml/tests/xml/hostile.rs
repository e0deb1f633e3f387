//! Schemas with the highest costs that are known: each is compiled, with its examples, or refused, and takes no more
//! than 64 MB meanwhile. A prompt has 64 KiB at most.
//! `cargo bench --bench hostile` measures the time. An unoptimized build takes minutes for all of them: every third one is
//! tried, unless `SYSTOLE_HOSTILE=all` asks for more.

use std::sync::mpsc;
use std::time::Duration;

use systole_xml::schema::PayloadSchema;

use crate::counting::BYTES;

#[test]
fn each_compiles_or_is_refused() {
    let mut large = Vec::new();
    let step = if std::env::var("SYSTOLE_HOSTILE").is_ok_and(|which| which == "all") { 1 } else { 3 };
    for hostile in crate::hostile_schemas::schemas().into_iter().step_by(step) {
        let (ended, end) = mpsc::channel();
        let name = hostile.name;
        std::thread::spawn(move || {
            let (held, _) = BYTES.get();
            BYTES.set((held, held));
            let compiled = PayloadSchema::from_xsd_set(&hostile.documents);
            for schema in compiled.iter().flatten() {
                schema.example();
            }
            let most = BYTES.get().1 - held;
            for schema in compiled.iter().flatten().take(3) {
                let length = schema.prompt().len();
                assert!(length <= 1 << 16, "{name}: the prompt of {} has {length} bytes", schema.qname());
            }
            ended.send((compiled.map(|schemas| schemas.len()).map_err(|error| error.to_string()), most))
        });
        // Much more than needed, for machines under load and builds without optimization.
        let (compiled, most) = match end.recv_timeout(Duration::from_secs(30)) {
            Ok(ended) => ended,
            Err(error) => panic!("{name}: still compiled after 30 s: {error}"),
        };
        match compiled {
            Ok(payloads) => println!("{most:>9} {name}: {payloads} payloads"),
            Err(error) => println!("{most:>9} {name}: {}", error.chars().take(160).collect::<String>()),
        }
        if most > 64_000_000 {
            large.push(format!("{name}: {most} bytes"));
        }
    }
    assert!(large.is_empty(), "{large:#?}");
}
