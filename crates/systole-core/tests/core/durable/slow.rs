//! A journal that writes more slowly than the core works: a principal with long messages waits before it, since the steps that
//! wait for it are written in order.

use std::sync::Arc;

use systole_core::core::*;
use systole_core::journal::{Journal, MemoryJournal, Op, Step};
use systole_core::vocab::{Name, Partition, Partitions, ThreadId, Time, ns};
use systole_xml::ladder::Raw;
use uuid::Uuid;

use super::simulation::start_shard;
use crate::payloads::{NS, qname};

/// Bytes of a long payload.
const LONG: usize = 200_000;

/// Bytes of steps of a principal that wait for the journal, from which on its further messages wait before it.
const MOST: usize = 512 << 10;

struct Slow {
    core: Core,
    blueprint: Arc<Blueprint>,
    now: Time,
    sent: u128,
    started: usize,
}

impl Slow {
    fn new() -> Self {
        let mut contract = Contract::new(Name::parse("worker").expect("a name"));
        (contract.accepts, contract.concurrency) = (vec![qname("ask")], 1000);
        let client = |name| ClientContract::new(Name::parse(name).expect("a name")).calls(vec![qname("ask")]);
        let blueprint = Arc::new(Blueprint::new("slow", vec![contract], vec![client("alice"), client("bob")]));
        let now = "2030-01-01T00:00:00Z".parse().expect("a time");
        let recovered = MemoryJournal::new([7; 32]).recover().expect("it is memory");
        let core = start_shard(&blueprint, recovered, (CoreId(0), 1, Partitions::ALL), &Directory::default(), now);
        Self { core, blueprint, now, sent: 0, started: 0 }
    }

    fn send(&mut self, from: &str, bytes: usize) {
        self.sent += 1;
        let root = Partition(0).place(ThreadId::from_uuid(Uuid::from_u128(self.sent << 8)));
        let text = "x".repeat(bytes);
        let envelope = format!(
            "<message xmlns=\"{}\"><meta><from>{from}</from></meta>\
             <ask xmlns=\"{NS}\"><n>1</n><text>{text}</text></ask></message>",
            ns::ENVELOPE,
        );
        let permit = Gauge::new(1, usize::MAX).admit(0).expect("there is room");
        let Some(Party::Client(client)) = self.blueprint.party(from) else { panic!("no client {from}") };
        let message = Raw::new(envelope).into();
        let injected =
            Injected { client, message, root, remote: false, last: false, attachment: None, permit, place: None };
        self.core.handle(Input::Injected(injected), self.now);
    }

    /// The steps that the core makes until it waits.
    fn steps(&mut self) -> Vec<(u64, Step)> {
        let mut steps = Vec::new();
        while let Some(output) = self.core.poll(self.now) {
            match output {
                Output::Append { number, step } => steps.push((number, step)),
                Output::Start(_) => self.started += 1,
                _ => {}
            }
        }
        steps
    }
}

fn is_from(step: &Step, name: &str) -> bool {
    step.ops.iter().any(|op| matches!(op, Op::Put(message) if message.from.as_str() == name))
}

fn bytes(steps: &[(u64, Step)]) -> usize {
    steps.iter().map(|(_, step)| step.bytes()).sum()
}

#[test]
fn long_messages_of_one_principal_wait_before_the_journal_and_not_in_it() {
    let mut slow = Slow::new();
    (0..40).for_each(|_| slow.send("alice", LONG));
    let mut steps = slow.steps();
    let most = bytes(&steps);
    assert!((MOST..MOST + 2 * LONG).contains(&most), "{most} bytes wait for the journal");
    // The journal has written nothing yet.
    slow.send("bob", 10);
    let made = slow.steps();
    assert!(
        made.len() == 1 && is_from(&made[0].1, "bob"),
        "bob's message waits for one step of alice's at most: {made:?}"
    );

    steps.extend(made);
    while let Some(last) = steps.last().map(|(number, _)| *number) {
        assert!(bytes(&steps) < MOST + 2 * LONG);
        slow.core.handle(Input::Appended { number: last }, slow.now);
        steps = slow.steps();
    }
    assert_eq!(slow.started, 41, "every message is delivered");
}
