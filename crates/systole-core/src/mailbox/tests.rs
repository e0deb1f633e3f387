//! The machine against a pump, a journal and readers that know nothing of it, in random histories with crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::entry::Claim;
use super::*;
use crate::journal::{
    BodyRecord, Journal, MailRecord, MemoryJournal, MessageRecord, MessageState, Recovered, ReplyTo, Step,
};
use crate::vocab::ThreadId;

const MAILBOXES: [&str; 2] = ["ada", "bob"];
const LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
enum Act {
    Arrive {
        mailbox: usize,
        bytes: usize,
    },
    Abandon {
        which: usize,
    },
    Lease {
        mailbox: usize,
        max: usize,
    },
    Handle {
        which: usize,
        action: u8,
    },
    Settle {
        which: usize,
        end: u8,
    },
    Acknowledge {
        which: usize,
    },
    Skip {
        mailbox: usize,
        which: usize,
    },
    Pass {
        mailbox: usize,
        through: u64,
    },
    Keep {
        which: usize,
    },
    Redrive {
        mailbox: usize,
    },
    Discard {
        mailbox: usize,
    },
    Reserve {
        mailbox: usize,
        session: u8,
        rows: usize,
    },
    Confirm {
        which: usize,
    },
    Release {
        session: u8,
    },
    Pause {
        mailbox: usize,
        on: bool,
    },
    Wait {
        seconds: u64,
    },
    /// The journal writes some of its steps.
    Write {
        steps: usize,
    },
    /// The pump runs a message of an earlier run again.
    RunAgain {
        which: usize,
    },
    /// The handler of a message is dropped, because its conversation leaves its core: an end that is not written has not
    /// happened.
    Move {
        which: usize,
    },
    Crash,
}

fn act() -> impl Strategy<Value = Act> {
    let mailbox = 0..MAILBOXES.len();
    let which = 0..16usize;
    prop_oneof![
        6 => (mailbox.clone(), 1..200usize).prop_map(|(mailbox, bytes)| Act::Arrive { mailbox, bytes }),
        1 => which.clone().prop_map(|which| Act::Abandon { which }),
        5 => (mailbox.clone(), 0..4usize).prop_map(|(mailbox, max)| Act::Lease { mailbox, max }),
        5 => (which.clone(), 0..5u8).prop_map(|(which, action)| Act::Handle { which, action }),
        4 => (which.clone(), 0..3u8).prop_map(|(which, end)| Act::Settle { which, end }),
        3 => which.clone().prop_map(|which| Act::Acknowledge { which }),
        1 => (mailbox.clone(), 0..40u64).prop_map(|(mailbox, through)| Act::Pass { mailbox, through }),
        1 => (mailbox.clone(), which.clone()).prop_map(|(mailbox, which)| Act::Skip { mailbox, which }),
        1 => which.clone().prop_map(|which| Act::Keep { which }),
        1 => mailbox.clone().prop_map(|mailbox| Act::Redrive { mailbox }),
        1 => mailbox.clone().prop_map(|mailbox| Act::Discard { mailbox }),
        2 => (mailbox.clone(), 0..2u8, 0..4usize)
            .prop_map(|(mailbox, session, rows)| Act::Reserve { mailbox, session, rows }),
        2 => which.clone().prop_map(|which| Act::Confirm { which }),
        1 => (0..2u8).prop_map(|session| Act::Release { session }),
        1 => (mailbox, any::<bool>()).prop_map(|(mailbox, on)| Act::Pause { mailbox, on }),
        3 => (0..40u64).prop_map(|seconds| Act::Wait { seconds }),
        6 => (1..5usize).prop_map(|steps| Act::Write { steps }),
        2 => which.clone().prop_map(|which| Act::Move { which }),
        3 => which.prop_map(|which| Act::RunAgain { which }),
        1 => Just(Act::Crash),
    ]
}

/// Operations that are handed to the journal and not written yet.
#[derive(Debug)]
struct Unwritten {
    ops: Vec<Op>,
    /// Messages that the pump consumes with it, and their ends.
    consumed: Option<(MessageId, Settlement)>,
    ended: Vec<MessageId>,
}

/// A message, as the pump and its readers know it.
#[derive(Debug, Default)]
struct Known {
    mailbox: usize,
    /// True if the pump waits for its end.
    open: bool,
    /// True if the pump has it from an earlier run, and has not run it again.
    expected: bool,
    ends: usize,
    /// Last receipt, and the end of its lease.
    lease: Option<([u8; 16], Time)>,
    reserved: Option<(u8, [u8; 16])>,
    /// True if it was redriven from the dead letters.
    redriven: bool,
}

struct World {
    machine: Mailboxes,
    journal: MemoryJournal,
    unwritten: Vec<Unwritten>,
    known: BTreeMap<MessageId, Known>,
    now: Time,
    drawn: u128,
}

fn mailboxes() -> Mailboxes {
    let limits = MailboxLimits { deliveries: 3, dead_letters: 5, ..MailboxLimits::default() };
    Mailboxes::new(MAILBOXES.iter().map(|name| (name.parse().unwrap(), DeliveryMode::Pulled)), limits)
}

fn name(mailbox: usize) -> Name {
    MAILBOXES[mailbox].parse().unwrap()
}

impl World {
    fn new() -> Self {
        let mut journal = MemoryJournal::new([0; 32]);
        let recovered = journal.recover().unwrap();
        let mut world = Self {
            machine: mailboxes(),
            journal,
            unwritten: Vec::new(),
            known: BTreeMap::new(),
            now: Time::default().after(Duration::from_secs(1)),
            drawn: 0,
        };
        world.recover(recovered);
        world
    }

    fn draw(&mut self) -> [u8; 16] {
        self.drawn += 1;
        self.drawn.to_be_bytes()
    }

    fn mail(id: MessageId, mailbox: usize, bytes: usize) -> MailRecord {
        MailRecord {
            seq: 0,
            mailbox: name(mailbox),
            id,
            thread: ThreadId::from_uuid(Uuid::from_u128(1)),
            from: "cli".parse().unwrap(),
            in_reply_to: None,
            payload: "{urn:t}a".parse().unwrap(),
            envelope: vec![b'x'; bytes].into(),
            at: Time::default(),
        }
    }

    fn handle(&mut self, input: MailboxInput) -> (MailboxChange, Result<(), Refused>) {
        let (mut change, done) = self.machine.handle(input, self.now);
        for End { id, settlement, ops } in std::mem::take(&mut change.ends) {
            let known = self.known.get_mut(&id).unwrap();
            assert!(known.open, "the pump is told an end that it does not wait for");
            known.open = false;
            self.unwritten.push(Unwritten { ops, consumed: Some((id, settlement)), ended: vec![id] });
        }
        let (ops, ended) = (std::mem::take(&mut change.ops), std::mem::take(&mut change.ended));
        if !ops.is_empty() {
            self.unwritten.push(Unwritten { ops, consumed: None, ended });
        }
        for Given { id, .. } in &change.given {
            let known = &self.known[id];
            let leased = known.lease.is_some_and(|(_, until)| until > self.now);
            assert!(!leased, "{id} is given while another reader has it");
            assert!(known.reserved.is_none(), "{id} is given while a session has it");
        }
        (change, done)
    }

    fn pick(&self, which: usize) -> Option<MessageId> {
        let ids: Vec<_> = self.known.keys().collect();
        (!ids.is_empty()).then(|| *ids[which % ids.len()])
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Arrive { mailbox, bytes } => {
                let id = MessageId::from_uuid(Uuid::from_bytes(self.draw()));
                self.known.insert(id, Known { mailbox, open: true, ..Known::default() });
                self.handle(MailboxInput::Arrived(Self::mail(id, mailbox, bytes))).1.unwrap();
            }
            Act::Abandon { which } => {
                if let Some(id) = self.pick(which).filter(|id| self.known[id].open) {
                    let known = self.known.get_mut(&id).unwrap();
                    (known.open, known.expected) = (false, false);
                    // The thread has closed before.
                    self.unwritten.push(Unwritten {
                        ops: Vec::new(),
                        consumed: Some((id, Settlement::Silent)),
                        ended: vec![],
                    });
                    self.known.get_mut(&id).unwrap().lease = None;
                    self.known.get_mut(&id).unwrap().reserved = None;
                    self.handle(MailboxInput::Abandoned { id }).1.unwrap();
                }
            }
            Act::Move { which } => {
                let Some(id) = self.pick(which) else { return };
                let is_end = |unwritten: &Unwritten| unwritten.ended == [id] && unwritten.consumed.is_some();
                if let Some(at) = self.unwritten.iter().position(is_end) {
                    self.unwritten.remove(at);
                    let known = self.known.get_mut(&id).unwrap();
                    (known.open, known.lease, known.reserved) = (true, None, None);
                }
                if self.known[&id].open {
                    self.known.get_mut(&id).unwrap().expected = true;
                    self.handle(MailboxInput::Moved { id }).1.unwrap();
                }
            }
            Act::Lease { mailbox, max } => {
                let receipts = (0..max).map(|_| self.draw()).collect();
                let (change, done) =
                    self.handle(MailboxInput::Lease { mailbox: name(mailbox), visibility: LEASE, receipts });
                done.unwrap();
                assert!(change.given.is_sorted_by_key(|given| given.seq), "{change:?}");
                assert!(change.given.is_empty() || !self.machine.is_paused(&name(mailbox)), "paused: {change:?}");
                for Given { id, receipt, .. } in change.given {
                    self.known.get_mut(&id).unwrap().lease = Some((receipt, self.now.after(LEASE)));
                }
            }
            Act::Handle { which, action } => {
                let Some(id) = self.pick(which) else { return };
                let (receipt, until) = self.known[&id].lease.unwrap_or(([0xff; 16], Time::default()));
                let due = self.now.after(LEASE);
                let action = match action {
                    0 => Action::Ack,
                    1 => Action::Nack { error: Some("no".into()), due: self.now },
                    2 => Action::Extend { due },
                    3 => Action::Hold,
                    _ => Action::Term { error: None },
                };
                let mailbox = name(self.known[&id].mailbox);
                let input = MailboxInput::Handle { mailbox, id, receipt, action: action.clone() };
                let (_, done) = self.handle(input);
                let ended = done.is_ok() && matches!(action, Action::Ack | Action::Term { .. } | Action::Nack { .. });
                let known = self.known.get_mut(&id).unwrap();
                match (done, action) {
                    (Ok(()), Action::Extend { due }) if until < Time::MAX && known.lease.is_some() => {
                        known.lease = Some((receipt, due));
                    }
                    (Ok(()), Action::Hold) => known.lease = Some((receipt, Time::MAX)),
                    _ if ended => known.lease = None,
                    _ => {}
                }
            }
            Act::Settle { which, end } => {
                let Some(id) = self.pick(which) else { return };
                let settlement = match end {
                    0 => Settlement::Reply("<r/>".into()),
                    1 => Settlement::Fail("it failed".into()),
                    _ => Settlement::Silent,
                };
                let waited = self.known[&id].open;
                if self.handle(MailboxInput::Settle { id, settlement: settlement.clone() }).1.is_ok() {
                    let known = self.known.get_mut(&id).unwrap();
                    assert!(!waited || !known.open, "{id}: an end is taken that its caller never gets");
                    (known.lease, known.reserved) = (None, None);
                    // The same once more is no mistake, and changes nothing.
                    if self.machine.find(id).is_some() {
                        let (change, done) = self.machine.handle(MailboxInput::Settle { id, settlement }, self.now);
                        assert!(done.is_ok() && change.repeated && change.ops.is_empty() && change.ends.is_empty());
                    }
                }
            }
            Act::Acknowledge { which } => {
                let Some(id) = self.pick(which) else { return };
                let known = &self.known[&id];
                let (mailbox, other) = (name(known.mailbox), name(1 - known.mailbox));
                let is_open = self.machine.find(id).is_some_and(|(_, state)| state.is_open());
                let is_leased = is_open && known.lease.is_some_and(|(_, until)| until > self.now);
                let refused = self.handle(MailboxInput::Acknowledge { mailbox: other, id }).1;
                assert_eq!(refused, Err(Refused::Unknown), "{id} is acknowledged in another mailbox");
                let done = self.handle(MailboxInput::Acknowledge { mailbox, id }).1;
                assert_eq!(done == Err(Refused::Stale), is_leased, "{id}: {done:?}, leased: {is_leased}");
                if done.is_ok() {
                    let known = self.known.get_mut(&id).unwrap();
                    (known.lease, known.reserved) = (None, None);
                }
            }
            Act::Pass { mailbox, through } => {
                self.handle(MailboxInput::Passed { mailbox: name(mailbox), through }).1.unwrap();
            }
            Act::Skip { mailbox, which } => {
                let Some(id) = self.pick(which) else { return };
                let before = self.machine.find(id).map(|(_, state)| state);
                let ids = vec![id, id];
                self.handle(MailboxInput::Skipped { mailbox: name(mailbox), ids }).1.unwrap();
                // A message of another mailbox is left as it is, and one that a reader has.
                let known = &self.known[&id];
                if known.mailbox != mailbox || known.lease.is_some_and(|(_, until)| until > self.now) {
                    assert_eq!(self.machine.find(id).map(|(_, state)| state), before);
                }
            }
            Act::Keep { which } => {
                let Some(id) = self.pick(which) else { return };
                let receipt = self.draw();
                let mailbox = name(self.known[&id].mailbox);
                // A reader takes a stale lease for final: it is none while the pump has yet to run the message again.
                let is_expected =
                    self.machine.entry(id).is_some_and(|(of, seq)| of.entries[&seq].claim == Claim::Expected);
                match self.handle(MailboxInput::Keep { mailbox, id, receipt }).1 {
                    Ok(()) => self.known.get_mut(&id).unwrap().lease = Some((receipt, Time::MAX)),
                    Err(refused) => assert_eq!(is_expected, refused == Refused::Early, "{refused:?}"),
                }
            }
            Act::Redrive { mailbox } => {
                self.handle(MailboxInput::Redrive { mailbox: name(mailbox), id: None }).1.unwrap();
                for known in self.known.values_mut().filter(|known| known.mailbox == mailbox && !known.open) {
                    known.redriven = true;
                    known.lease = known.lease.filter(|(_, until)| *until > self.now);
                }
            }
            Act::Discard { mailbox } => {
                self.handle(MailboxInput::Discard { mailbox: name(mailbox), id: None }).1.unwrap();
            }
            Act::Reserve { mailbox, session, rows } => {
                let token = self.draw();
                let input =
                    MailboxInput::Reserve { mailbox: name(mailbox), session: [session; 16], token, rows, bytes: 100 };
                let (change, done) = self.handle(input);
                done.unwrap();
                for Given { id, .. } in change.given {
                    self.known.get_mut(&id).unwrap().reserved = Some((session, token));
                }
            }
            Act::Confirm { which } => {
                let Some((session, token)) = self.pick(which).and_then(|id| self.known[&id].reserved) else { return };
                let (change, done) = self.handle(MailboxInput::Confirm { session: [session; 16], token });
                if done == Err(Refused::Early) {
                    let is_of_it = |known: &&Known| known.reserved == Some((session, token));
                    assert!(self.known.values().filter(is_of_it).any(|known| known.expected), "it waits for nothing");
                    return;
                }
                done.unwrap();
                for (id, _) in change.confirmed {
                    let known = self.known.get_mut(&id).unwrap();
                    let held = known.reserved.take();
                    assert!(held.is_none_or(|held| held == (session, token)), "confirmed by another's token");
                }
            }
            Act::Release { session } => {
                self.handle(MailboxInput::Release { session: [session; 16], token: None }).1.unwrap();
                let of = self.known.values_mut().filter(|known| known.reserved.is_some_and(|(by, _)| by == session));
                of.for_each(|known| known.reserved = None);
            }
            Act::Pause { mailbox, on } => {
                let name = name(mailbox);
                let input = if on { MailboxInput::Pause { name } } else { MailboxInput::Resume { name } };
                self.handle(input).1.unwrap();
            }
            Act::Wait { seconds } => {
                self.now = self.now.after(Duration::from_secs(seconds));
                self.handle(MailboxInput::Tick).1.unwrap();
            }
            Act::Write { steps } => (0..steps).for_each(|_| self.write()),
            Act::RunAgain { which } => {
                if let Some(id) = self.pick(which) {
                    self.run_again(id);
                }
            }
            Act::Crash => self.crash(),
        }
        for (name, mailbox) in &self.machine.boxes {
            let open = mailbox.entries.values().filter(|entry| entry.is_open()).count();
            assert_eq!(self.machine.waiting_in(name), open, "what waits is counted");
        }
    }

    /// Lets the journal write its oldest step.
    fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        let Unwritten { ops, consumed, ended } = self.unwritten.remove(0);
        let mut step = Step { ops, at: self.now };
        if let Some((id, _)) = &consumed {
            let known = self.known.get_mut(id).unwrap();
            known.ends += 1;
            assert_eq!(known.ends, 1, "{id} is consumed twice");
            step.ops.push(Op::Done { message: number(*id) });
        }
        self.journal.write(&[step]).unwrap();
        for id in ended {
            let (change, done) = self.machine.handle(MailboxInput::Durable { id }, self.now);
            assert!(done.is_ok() && change.ops.is_empty(), "{change:?}");
        }
    }

    fn crash(&mut self) {
        self.unwritten.clear();
        let mut recovered = self.journal.recover().unwrap();
        // The pump has all messages that it has not consumed. What arrived is in its journal before.
        for (id, known) in &mut self.known {
            known.reserved = None;
            known.expected = known.ends == 0;
            if known.ends == 0 {
                known.open = true;
                recovered.messages.push(message(*id));
            } else {
                known.open = false;
            }
        }
        self.recover(recovered);
    }

    fn recover(&mut self, recovered: Recovered) {
        self.machine = mailboxes();
        let change = self.machine.recover(&recovered, self.now);
        if !change.ops.is_empty() {
            self.unwritten.push(Unwritten { ops: change.ops, consumed: None, ended: change.ended });
        }
        let leases: BTreeMap<_, _> = recovered
            .mail
            .iter()
            .filter(|mail| mail.status.state.is_open())
            .map(|mail| (mail.id, (mail.status.receipt, mail.status.due)))
            .collect();
        for (id, known) in &mut self.known {
            known.lease = leases.get(id).and_then(|(receipt, due)| Some(((*receipt)?, *due)));
        }
    }

    /// Lets the pump run a message of an earlier run again.
    fn run_again(&mut self, id: MessageId) {
        let known = self.known.get_mut(&id).unwrap();
        if std::mem::take(&mut known.expected) {
            let mail = Self::mail(id, known.mailbox, 50);
            self.handle(MailboxInput::Arrived(mail)).1.unwrap();
        }
    }

    /// Checks that a reader which only leases and acknowledges can end every message that waits.
    fn finish(&mut self) {
        for session in 0..2 {
            self.act(Act::Release { session });
        }
        for id in self.known.keys().copied().collect::<Vec<_>>() {
            self.run_again(id);
        }
        let held: Vec<_> = self.known.iter().filter(|(_, known)| known.open).map(|(id, _)| *id).collect();
        for id in held {
            self.handle(MailboxInput::Settle { id, settlement: Settlement::Silent }).1.unwrap();
        }
        while !self.unwritten.is_empty() {
            self.write();
        }
        assert!(self.known.values().all(|known| known.ends == 1), "every message ends once");
        let recovered = self.journal.recover().unwrap();
        let left = recovered.mail.iter().filter(|mail| mail.status.state == MailState::Waiting);
        assert_eq!(left.count(), 0, "no message waits for nobody");
        let remembered: BTreeSet<_> = recovered.mail.iter().map(|mail| mail.id).collect();
        let here: BTreeSet<_> = self.machine.places.keys().copied().collect();
        assert_eq!(here, remembered, "memory and journal agree");
        for mailbox in self.machine.boxes.values() {
            assert_eq!(mailbox.bytes, 0, "nothing waits");
            assert!(mailbox.dead.len() <= 5);
        }
    }
}

fn number(id: MessageId) -> Number {
    id.as_uuid().as_u128() as Number
}

fn message(id: MessageId) -> MessageRecord {
    MessageRecord {
        number: number(id),
        place: number(id),
        thread: 1,
        id,
        from: "cli".parse().unwrap(),
        in_reply_to: None,
        answers: ReplyTo::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload("<a xmlns='urn:t'/>".into()),
        attempts: 0,
    }
}

/// Ends a message in some way.
type EndOf = fn(&mut World, MessageId);

#[test]
fn an_answer_without_an_addressee_is_for_one_message_or_for_none() {
    fn settle(world: &mut World, id: MessageId, settlement: Settlement) {
        world.handle(MailboxInput::Settle { id, settlement }).1.unwrap();
    }
    let show = |world: &mut World, id, person: &str| {
        let (change, done) = world.handle(MailboxInput::Show { mailbox: name(0), id, person: person.parse().unwrap() });
        done.unwrap();
        change.shown
    };
    let reply: EndOf = |world, id| settle(world, id, Settlement::Reply("<r/>".into()));
    let fail: EndOf = |world, id| settle(world, id, Settlement::Fail("it failed".into()));
    let pass: EndOf = |world, id| world.handle(MailboxInput::Skipped { mailbox: name(0), ids: vec![id] }).1.unwrap();
    let abandon: EndOf = |world, _| world.act(Act::Abandon { which: 0 });
    let nothing: EndOf = |_, _| ();
    // Times that a message is shown, its end, and whether the next one can be the one that an answer is for.
    let cases =
        [(0, fail, true), (1, reply, true), (2, reply, false), (3, reply, false), (1, fail, false), (1, pass, false)];
    for (times, end, then) in cases.into_iter().chain([(1, abandon, false), (1, nothing, false)]) {
        for crash in [false, true] {
            let mut world = World::new();
            (0..2).for_each(|_| world.act(Act::Arrive { mailbox: 0, bytes: 1 }));
            let [one, two] = [0, 1].map(|which| world.pick(which).unwrap());
            (0..times).for_each(|_| assert!(show(&mut world, one, "ada")));
            end(&mut world, one);
            if crash {
                (0..world.unwritten.len()).for_each(|_| world.write());
                world.crash();
            }
            assert_eq!(show(&mut world, two, "ada"), then, "shown {times} times, crash: {crash}");
            assert!(times == 0 || !show(&mut world, two, "bob"), "the addressee changes");
            assert_eq!(show(&mut world, two, "ada"), then, "shown {times} times, crash: {crash}, once more");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_ends_once_whatever_readers_do_and_wherever_it_crashes(acts in prop::collection::vec(act(), 1..80)) {
        let mut world = World::new();
        acts.into_iter().for_each(|act| world.act(act));
        world.finish();
    }
}

#[test]
fn a_lease_keeps_the_time_that_it_had_left_when_the_date_is_set() {
    let hour = Duration::from_secs(3600);
    for is_back in [false, true] {
        let mut world = World::new();
        world.now = Time::default().after(10 * hour);
        world.act(Act::Arrive { mailbox: 0, bytes: 10 });
        world.act(Act::Lease { mailbox: 0, max: 1 });
        let (before, left) = (world.now, LEASE / 2);
        let after = Time::default().after(if is_back { 9 * hour } else { 11 * hour });
        world.now = after.after(LEASE - left);
        world.machine.clock_set(before, after);
        assert_eq!(world.machine.next_deadline(), Some(after.after(LEASE)), "set back: {is_back}");
        world.handle(MailboxInput::Tick).1.unwrap();
        assert!(!world.machine.has_free(&name(0)), "set back: {is_back}");
        world.now = after.after(LEASE);
        world.handle(MailboxInput::Tick).1.unwrap();
        assert!(world.machine.has_free(&name(0)), "set back: {is_back}");
    }
}
