//! The threads on which libxml judges payloads: no shard is held up by it, whatever it takes.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::link::{Command, Links};
use super::pool::{NoThread, Pool, Work};
use crate::core::contain::contain;
use crate::core::{Input, JudgementId, ShardId};
use crate::ladder::{Canonical, Element, Validated};
use crate::schema::{Catalog, SchemaError, Validator};

/// Judgements that run at the same time, for all shards together; the others wait.
const THREADS: usize = 4;

/// A few threads, made when there is something to judge.
pub(super) struct Judges {
    pool: Pool,
    catalog: Arc<Catalog>,
    links: Links,
}

thread_local! {
    /// What this thread has compiled: libxml doesn't say that threads may share it.
    static VALIDATOR: RefCell<Option<Validator>> = const { RefCell::new(None) };
}

impl Judges {
    /// `inline`: everything is judged at once, where it is asked for, so that a test is deterministic.
    pub(super) fn new(catalog: Arc<Catalog>, links: Links, inline: bool) -> Self {
        Self { pool: if inline { Pool::inline() } else { Pool::of_threads(THREADS) }, catalog, links }
    }

    /// Judges payloads for the core of a shard, and tells it.
    pub(super) fn judge(&self, shard: ShardId, judgement: JudgementId, payloads: Vec<Canonical>) {
        let (catalog, links) = (self.catalog.clone(), self.links.clone());
        let work = move || {
            let findings = payloads.into_iter().map(|payload| find(&catalog, payload)).collect();
            links.send(shard, Command::Core(Input::Judged { judgement, findings }));
        };
        self.submit(Box::new(work));
    }

    /// Judges a payload for a handler, which goes on when the verdict is there.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the verdict to nobody.
    pub(super) async fn find(&self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let root = payload.root().clone();
        let (catalog, (tell, verdict)) = (self.catalog.clone(), oneshot::channel());
        // Whoever has been cancelled hears of it no more.
        self.submit(Box::new(move || drop(tell.send(find(&catalog, payload)))));
        verdict.await.unwrap_or_else(|_| Err(SchemaError::unjudged(&root)))
    }

    /// Every payload schema of the organism.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn submit(&self, work: Work) {
        if let Err(NoThread(work)) = self.pool.submit(work) {
            work();
        }
    }
}

impl Drop for Judges {
    fn drop(&mut self) {
        self.pool.close();
    }
}

fn find(catalog: &Arc<Catalog>, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
    VALIDATOR.with_borrow_mut(|validator| {
        let root = payload.root().clone();
        let known = validator.take().filter(|validator| Arc::ptr_eq(validator.catalog(), catalog));
        let mut at_work = known.unwrap_or_else(|| Validator::new(catalog.clone()));
        let finding = contain(|| (at_work.validate(payload), at_work));
        match finding {
            Ok((finding, at_work)) => {
                *validator = Some(at_work);
                finding
            }
            // One that panicked is not used again.
            Err(_) => Err(SchemaError::unjudged(&root)),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::core::{Contract, Draft, Emission, EmissionKind};
    use crate::ladder::{Raw, climb};
    use crate::schema::PayloadSchema;
    use crate::shell::echo::EchoListener;
    use crate::shell::human::{Console, HumanListener};
    use crate::shell::{Organism, OrganismBuilder, block_on};
    use crate::vocab::{Name, QName, XmlLimits};

    /// `fast` is judged by the engine, `slow` by libxml.
    const FAST: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
        <xs:element name="fast" type="xs:long"/></xs:schema>"#;
    const SLOW: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
        <xs:element name="slow"><xs:complexType><xs:sequence>
          <xs:element name="n" type="xs:long" maxOccurs="unbounded"/>
        </xs:sequence></xs:complexType>
        <xs:unique name="u"><xs:selector xpath="n"/><xs:field xpath="."/></xs:unique></xs:element></xs:schema>"#;

    fn call(text: &str) -> Emission {
        let payload = climb(&Raw::new(text.to_owned()), &XmlLimits::default()).unwrap();
        Emission { kind: EmissionKind::Call, to: None, thread: None, payload: Draft::Canonical(payload) }
    }

    /// One shard with an echo, and a client who may call these payloads.
    fn builder(calls: &[&str]) -> OrganismBuilder {
        let mut contract = Contract::new(Name::parse("echo").unwrap());
        contract.accepts = ["fast", "slow"].map(|local| QName::new("", local).unwrap()).into();
        contract.replies = contract.accepts.clone();
        let schemas = [FAST, SLOW].into_iter().flat_map(|text| PayloadSchema::from_xsd("x.xsd", text).unwrap());
        let builder = Organism::builder("test").shards(1).schemas(schemas).raw_listener(contract, || EchoListener);
        builder.client("alice", |client| calls.iter().fold(client, |client, call| client.calls_element(call)))
    }

    fn echoes() -> Organism {
        builder(&["fast", "slow"]).start().unwrap()
    }

    /// Keeps all judges busy, until what is returned is dropped.
    fn gates(organism: &Organism) -> Vec<Sender<()>> {
        let (enter, entered) = channel();
        let keep_busy = |_| {
            let (open, gate) = channel::<()>();
            let enter = enter.clone();
            let work = move || {
                enter.send(()).unwrap();
                // It ends when the gate is dropped.
                assert!(gate.recv().is_err());
            };
            assert!(organism.judges().pool.submit(Box::new(work)).is_ok());
            open
        };
        let gates = (0..THREADS).map(keep_busy).collect();
        entered.iter().take(THREADS).for_each(drop);
        gates
    }

    #[test]
    fn a_shard_goes_on_while_all_judges_are_busy() {
        let organism = echoes();
        let gates = gates(&organism);
        let alice = organism.client("alice").unwrap();
        let mut slow = alice.converse();
        slow.send(call("<slow><n>1</n></slow>")).unwrap();
        // The second message comes to the only shard behind the first.
        let fast = block_on(alice.ask(call("<fast>2</fast>"))).unwrap();
        assert_eq!(fast.payload.payload().as_str(), "<fast>2</fast>");
        assert!(slow.try_receive().is_none());
        drop(gates);
        let answer = block_on(slow.receive()).unwrap();
        assert_eq!(answer.payload.as_str(), "<slow><n>1</n></slow>");
        let fault = block_on(alice.ask(call("<slow><n>1</n><n>1</n></slow>"))).unwrap_err().to_string();
        assert!(fault.contains("breaks its contract"), "{fault}");
    }

    #[test]
    fn what_a_person_typed_waits_for_a_judge_and_the_shard_for_nobody() {
        let (keyboard, mut typist) = std::io::pipe().unwrap();
        let console = Console::start(BufReader::new(keyboard), false, Arc::new(|_| {}));
        let mut person = Contract::new(Name::parse("ada").unwrap());
        person.accepts = vec![QName::new("", "ask").unwrap()];
        person.replies = vec![QName::new("", "slow").unwrap()];
        let ask = FAST.replace("fast", "ask");
        let organism = builder(&["fast", "ask"])
            .schemas(PayloadSchema::from_xsd("ask.xsd", &ask).unwrap())
            .raw_listener(person, move || HumanListener::new(console.clone()))
            .start()
            .unwrap();
        let gates = gates(&organism);
        let alice = organism.client("alice").unwrap();
        let mut asked = alice.converse();
        asked.send(call("<ask>1</ask>")).unwrap();
        typist.write_all(b"<slow><n>1</n></slow>\n").unwrap();
        while organism.judges().pool.queued() == 0 {
            assert!(asked.try_receive().is_none(), "the shard has judged it");
            std::thread::yield_now();
        }
        block_on(alice.ask(call("<fast>2</fast>"))).unwrap();
        drop(gates);
        assert_eq!(block_on(asked.receive()).unwrap().payload.as_str(), "<slow><n>1</n></slow>");
    }

    #[test]
    fn an_organism_is_not_idle_before_its_verdicts_are_there() {
        let organism = echoes();
        let alice = organism.client("alice").unwrap();
        for n in 0..20 {
            alice.tell(call(&format!("<slow><n>{n}</n></slow>"))).unwrap();
        }
        block_on(organism.run_until_idle());
        assert_eq!(std::iter::from_fn(|| alice.try_receive()).count(), 20);
    }
}
