//! Steps in a batch. A tag means the same operation for good; a change of a record needs another [`VERSION`].

use bytes::Bytes;
use systole_core::journal::{
    ActRecord, AddresseeRecord, AgentRecord, AnswerRecord, BodyRecord, BudgetRecord, CallRecord, EgressRecord, FanId,
    FanOutcome, FanRecord, LetterPlace, LetterRecord, MailRecord, MailState, MailStatus, MessageRecord, MessageState,
    NoteRecord, Op, Owner, Registration, RememberedRecord, ReplyTo, RequestRecord, SettledRecord, StateRecord, Step,
    SubmissionRecord, TaskRecord, ThreadRecord,
};
use systole_core::vocab::{
    Amounts, BrokenRule, Budget, Fault, FaultCode, MessageId, Millionths, Name, Partition, Position, QName, TaskId,
    ThreadId, Time,
};
use uuid::Uuid;

use super::codec::{Coded, Source, write_text};
use super::text::{letter_place, parse_letter_place, parse_name, parse_remembered, remembered};

/// Version of the encoding: the first byte of a batch.
pub(super) const VERSION: u8 = 1;

/// Structs as their fields in order, and enums as a tag and the fields of the variant.
macro_rules! coded {
    (@struct $type:ident { $($field:ident),+ }) => {
        impl Coded for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($field.write(out);)+
            }

            fn read(from: &mut Source<'_>) -> Option<Self> {
                $(let $field = Coded::read(from)?;)+
                Some(Self { $($field),+ })
            }
        }
    };
    (@enum $type:ident { $($tag:literal: $variant:ident $(($($one:ident),+))? $({ $($field:ident),+ })?;)+ }) => {
        impl Coded for $type {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($one),+))? $({ $($field),+ })? => {
                        out.push($tag);
                        $($($one.write(out);)+)?
                        $($($field.write(out);)+)?
                    })+
                }
            }

            fn read(from: &mut Source<'_>) -> Option<Self> {
                match from.byte()? {
                    $($tag => {
                        $($(let $one = Coded::read(from)?;)+)?
                        $($(let $field = Coded::read(from)?;)+)?
                        Some(Self::$variant $(($($one),+))? $({ $($field),+ })?)
                    })+
                    _ => None,
                }
            }
        }
    };
    ($($kind:ident $type:ident { $($content:tt)+ })+) => {
        $(coded! { @$kind $type { $($content)+ } })+
    };
}

coded! {
    struct Step { at, ops }
    enum Op {
        0: Open(thread);
        1: Owes { thread, opened_by, reply_to };
        2: Left { thread };
        3: Close { thread };
        4: Budget(budget);
        5: Put(message);
        6: Done { message };
        7: Cancelled { message };
        8: Attempt { message, attempts };
        9: Fan(fan);
        10: Delivered { fan, count };
        11: CountedOff { fan, count };
        12: Settled { fan, settled };
        13: Decided { fan, order, result };
        14: Dropped { fan };
        15: Forgotten { fan };
        16: Note(note);
        17: Remember(entry);
        18: Forget { thread, before };
        19: Leave(egress);
        20: Read { egress };
        21: Letter(letter);
        22: LetterGone { letter };
        23: Unmark { letter };
        24: Task(task);
        25: TaskGone { inbox, id };
        26: State(state);
        27: Mail(mail, status);
        28: MailStatus { seq, status };
        29: MailMoved { from, to, status };
        30: MailGone { seq };
        31: Agent(agent);
        32: Addressee(addressee);
        33: Submitted(submission);
        34: ForgetBetween { thread, after, before };
        35: Paused { listener, since };
        36: Acted(act);
    }
    struct ThreadRecord {
        number, id, parent, root, owner, ordinal, depth, opened_by, reply_to, deadline, own_deadline, spawned, left,
        label, traceparent
    }
    enum Owner { 0: Listener(name); 1: Client(name); 2: Boot; 3: None; }
    enum ReplyTo { 0: None; 1: Single; 2: Fan(fan, index); }
    struct FanId { message, call }
    struct BudgetRecord { thread, budget, spent }
    struct Amounts { tokens, cost, calls, threads }
    struct MessageRecord { number, place, thread, id, from, in_reply_to, answers, state, body, attempts }
    enum MessageState { 0: Queued; 1: Delayed(due); 2: Backlog(owes); }
    enum BodyRecord { 0: Payload(payload); 1: Fault(fault); 2: Fatal(fault); }
    struct FanRecord { id, thread, source, total, delivered, counted_off, call }
    struct CallRecord { requests, join, until, settled, outcome }
    enum FanOutcome { 0: Open; 1: Decided { order, result }; 2: Dropped; }
    struct RequestRecord { to, thread, text, digest }
    struct SettledRecord { index, outcome }
    struct AnswerRecord { from, payload }
    struct NoteRecord { message, index, name, value }
    struct LetterRecord { number, partition, at, from, to, place, payload, reason }
    struct TaskRecord { inbox, id, place, state, body }
    struct StateRecord { listener, blob }
    struct ActRecord { by, act, of, error, opened }
    struct MailRecord { seq, mailbox, id, thread, from, in_reply_to, payload, envelope, at }
    struct MailStatus { state, deliveries, due, receipt, spent, error, answer }
    struct AgentRecord { name, paused, registered }
    struct Registration { at, mode, url, declared }
    struct AddresseeRecord { mailbox, person }
    struct SubmissionRecord { id, client, root, key }
    struct Fault { code, message, retryable, in_reply_to, rule }
    struct BrokenRule { rule, at, example }
    struct Position { line, column }
}

/// Values as another value, and from it.
macro_rules! coded_as {
    ($($type:ty: $as:ty, $out:expr, $in:expr;)+) => {
        $(impl Coded for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let convert: fn(&Self) -> $as = $out;
                convert(self).write(out);
            }

            fn read(from: &mut Source<'_>) -> Option<Self> {
                let convert: fn($as) -> Option<Self> = $in;
                convert(Coded::read(from)?)
            }
        })+
    };
}

coded_as! {
    Time: u64, |time| time.as_nanos(), |nanos| Some(Self::from_nanos(nanos));
    Millionths: u64, |cost| cost.0, |cost| Some(Self(cost));
    Partition: u8, |partition| partition.0, |number| Some(Self(number));
    ThreadId: [u8; 16], |id| *id.as_uuid().as_bytes(), |id| Some(Self::from_uuid(Uuid::from_bytes(id)));
    MessageId: [u8; 16], |id| *id.as_uuid().as_bytes(), |id| Some(Self::from_uuid(Uuid::from_bytes(id)));
    TaskId: [u8; 16], |id| *id.as_uuid().as_bytes(), |id| Some(Self::from_uuid(Uuid::from_bytes(id)));
    QName: String, |name| name.to_string(), |text| text.parse().ok();
    LetterPlace: String, letter_place, |text| parse_letter_place(&text);
}

impl Coded for EgressRecord {
    /// The payload is mostly a part of the envelope, and then written once.
    fn write(&self, out: &mut Vec<u8>) {
        let Self { number, client, root, from, in_reply_to, envelope, fault, payload } = self;
        number.write(out);
        client.write(out);
        root.write(out);
        from.write(out);
        in_reply_to.write(out);
        envelope.write(out);
        fault.write(out);
        // The payload is the last element of an envelope.
        let at = envelope.strip_suffix(b"</message>").and_then(|rest| rest.strip_suffix(&payload[..])).map(<[u8]>::len);
        match at {
            Some(at) => Ok::<_, Bytes>((at as u64, payload.len() as u64)).write(out),
            None => Err::<(u64, u64), _>(payload.clone()).write(out),
        }
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        let mut egress = Self {
            number: Coded::read(from)?,
            client: Coded::read(from)?,
            root: Coded::read(from)?,
            from: Coded::read(from)?,
            in_reply_to: Coded::read(from)?,
            envelope: Coded::read(from)?,
            fault: Coded::read(from)?,
            payload: Bytes::new(),
        };
        egress.payload = match Result::<(u64, u64), Bytes>::read(from)? {
            Ok((at, len)) => {
                let (at, len) = (usize::try_from(at).ok()?, usize::try_from(len).ok()?);
                let part = egress.envelope.get(at..at.checked_add(len)?)?;
                egress.envelope.slice_ref(part)
            }
            Err(payload) => payload,
        };
        Some(egress)
    }
}

impl Coded for RememberedRecord {
    fn write(&self, out: &mut Vec<u8>) {
        self.number.write(out);
        self.thread.write(out);
        self.from.write(out);
        Bytes::from(remembered(self)).write(out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        let (key, sender) = (Coded::read(from)?, Coded::read(from)?);
        let text: Bytes = Coded::read(from)?;
        parse_remembered(key, sender, &text)
    }
}

impl Coded for Name {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.as_str(), out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        parse_name(from.text()?)
    }
}

impl Coded for FaultCode {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.as_str(), out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        let text = from.text()?;
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

impl Coded for MailState {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.as_str(), out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        Self::parse(from.text()?)
    }
}

impl Coded for Budget {
    fn write(&self, out: &mut Vec<u8>) {
        self.tokens.write(out);
        self.cost.write(out);
        self.calls.write(out);
        self.threads.write(out);
    }

    /// The records of threads have budgets without a time.
    fn read(from: &mut Source<'_>) -> Option<Self> {
        let (tokens, cost): (Option<u64>, Option<Millionths>) = Coded::read(from)?;
        let (calls, threads): (Option<u64>, Option<u64>) = Coded::read(from)?;
        Some(Self::NONE.tokens(tokens).cost(cost).calls(calls).threads(threads))
    }
}

#[cfg(test)]
mod tests {
    use systole_core::journal::{Link, Number};
    use systole_core::vocab::ThreadPath;

    use super::*;

    /// Operations with values of all types.
    fn step() -> Step {
        let fan = FanId { message: u64::MAX, call: Some(3) };
        let fault = Fault {
            code: FaultCode::Timeout,
            message: "too late".into(),
            retryable: true,
            in_reply_to: Some(MessageId::from_uuid(Uuid::from_u128(7))),
            rule: Some(Box::new(BrokenRule {
                rule: "a rule".to_owned(),
                at: Some(Position { line: 3, column: 300 }),
                example: None,
            })),
        };
        let answer = AnswerRecord { from: Name::core(), payload: Bytes::from_static(b"<a></a>") };
        let settled = |index, outcome| SettledRecord { index, outcome };
        let letter = LetterRecord {
            number: 1 << 62,
            partition: Partition(200),
            at: Time::MAX,
            from: Name::system(),
            to: Some(Name::root()),
            place: LetterPlace {
                conversation: Some(ThreadId::from_uuid(Uuid::from_u128(11))),
                path: ThreadPath::new(vec![(Name::core(), 1), (Name::system(), 2)]),
            },
            payload: Some(("{urn:a}b".parse().unwrap(), Bytes::from_static(b"<b></b>"))),
            reason: fault.clone(),
        };
        let budget = Budget::NONE.tokens(Some(5)).cost(Some(Millionths(u64::MAX)));
        let spent = Amounts { tokens: 1, cost: Millionths(2), calls: 3, threads: 4 };
        let status = MailStatus { state: MailState::Dead, receipt: Some([1; 16]), ..MailStatus::default() };
        let id = TaskId::from_uuid(Uuid::from_u128(9));
        let ops = vec![
            Op::Settled { fan, settled: settled(1, Err(fault.clone())) },
            Op::Decided { fan, order: 0, result: Ok(vec![settled(0, Ok(answer)), settled(1, Err(fault.clone()))]) },
            Op::Decided { fan, order: 128, result: Err(fault) },
            Op::Letter(letter),
            Op::Unmark { letter: 127 },
            Op::Leave(egress(b"<a></a>")),
            Op::Leave(egress(b"<c></c>")),
            Op::Budget(BudgetRecord { thread: 16_384, budget, spent }),
            Op::MailStatus { seq: 3, status },
            Op::TaskGone { inbox: Name::core(), id },
            Op::State(StateRecord { listener: Name::core(), blob: Bytes::new() }),
            remember(0, Link::None),
            remember(1, Link::None),
            remember(2, Link::Calls(vec![MessageId::from_uuid(Uuid::from_u128(1)), MessageId::from_uuid(Uuid::nil())])),
            remember(u32::MAX, Link::Answers(2)),
            Op::ForgetBetween { thread: 1, after: 2, before: Number::MAX },
            Op::Addressee(AddresseeRecord { mailbox: Name::core(), person: None }),
            Op::Paused { listener: Name::core(), since: Some(Time::MAX) },
            Op::Acted(ActRecord {
                by: Name::system(),
                act: "retry".into(),
                of: "it".into(),
                error: Some("no".into()),
                opened: Some(ThreadId::from_uuid(Uuid::from_u128(3))),
            }),
        ];
        Step { ops, at: Time::from_nanos(1) }
    }

    fn remember(place: u32, link: Link) -> Op {
        let payload = Bytes::from_static(b"<a></a>");
        Op::Remember(RememberedRecord { number: 5, thread: 4, place, link, from: Name::core(), payload })
    }

    fn egress(payload: &'static [u8]) -> EgressRecord {
        EgressRecord {
            number: 1,
            client: Name::core(),
            root: ThreadId::from_uuid(Uuid::from_u128(5)),
            from: Name::core(),
            in_reply_to: None,
            envelope: Bytes::from_static(b"<message><a></a></message>"),
            fault: None,
            payload: Bytes::from_static(payload),
        }
    }

    fn read(bytes: &Bytes) -> Option<Step> {
        let mut source = Source::new(bytes);
        Step::read(&mut source).filter(|_| source.is_empty())
    }

    #[test]
    fn a_step_is_read_as_it_was_written() {
        let (step, mut bytes) = (step(), Vec::new());
        step.write(&mut bytes);
        assert_eq!(read(&bytes.into()), Some(step));
    }

    #[test]
    fn damaged_bytes_are_refused_or_mean_something_else() {
        let (step, mut bytes) = (step(), Vec::new());
        step.write(&mut bytes);
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len].to_vec().into()), None, "{len} bytes");
        }
        bytes.push(0);
        assert_eq!(read(&bytes.clone().into()), None, "one byte more");
        bytes.pop();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(read(&bytes.clone().into()).as_ref(), Some(&step), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // A length beyond the bytes takes no memory.
        assert_eq!(read(&vec![0xff; 64].into()), None);
        assert_eq!(read(&[&[1], [0xff; 9].as_slice(), &[1]].concat().into()), None);
    }
}
