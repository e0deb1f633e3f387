//! Concurrency slots of listeners: the number of handlers that may run at once, and the threads that wait.
//!
//! Threads that wait stand in a line of their conversation, the conversations in a queue of their principal, and the
//! principals take turns ([`Rounds`]): a slot that comes free goes to the conversation at the head of the principal whose
//! turn it is, which then goes to the tail of that queue if it has more. So a thread that is the only one of its principal waits
//! for as many slots as there are principals, however many conversations and threads these have.
//!
//! A thread whose message stands in a mailbox since before a start has a slot from then on, even if there are not so many
//! any more: its listener has the message, and may answer it in any order. As many slots that come back are not given on.
//!
//! Handlers that had begun before a crash go before all others that wait.

use std::collections::VecDeque;

use foldhash::HashMap;

use super::blueprint::{ListenerId, Principal};
use super::conversation::Rounds;
use super::io::{CoreId, Precedence};
use super::key::ThreadKey;

/// A thread somewhere in the organism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiter {
    pub core: CoreId,
    pub thread: ThreadKey,
    /// The root of its conversation.
    pub root: ThreadKey,
    pub principal: Principal,
}

/// The use of a listener's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerSlots {
    /// The listener.
    pub listener: ListenerId,
    /// Slots in use: handlers that run.
    pub running: u32,
    /// Threads that wait for a slot.
    pub waiting: usize,
}

/// The slots of one listener, kept in its home core.
#[derive(Debug)]
pub(super) struct Slots {
    free: u32,
    /// States whether the listener rests: no thread gets a slot, neither to start a handler nor to resume one.
    pub rests: bool,
    /// States whether an operator has the listener paused, with the same effect.
    pub paused: bool,
    /// Slots that were given without being free.
    owed: u32,
    /// Threads whose handlers had begun before a crash, in the order in which they had.
    begun: VecDeque<(Place, u64)>,
    /// The conversations that have a line, in the order of their turns.
    queue: Rounds<Place>,
    lines: HashMap<Place, Line>,
    /// The threads that still wait, with their numbers. Other entries of the lines are given up.
    waiting: HashMap<Place, u64>,
    /// Numbers in all lines.
    standing: usize,
    issued: u64,
}

/// A thread of a core.
type Place = (CoreId, ThreadKey);

/// The threads of one conversation that wait.
#[derive(Debug, Default)]
struct Line {
    /// Resumed handlers: before messages that have not started.
    resumes: VecDeque<(ThreadKey, u64)>,
    starts: VecDeque<(ThreadKey, u64)>,
}

impl Slots {
    pub(super) fn new(concurrency: u32) -> Self {
        Self {
            free: concurrency,
            rests: false,
            paused: false,
            owed: 0,
            begun: VecDeque::new(),
            queue: Rounds::default(),
            lines: HashMap::default(),
            waiting: HashMap::default(),
            standing: 0,
            issued: 0,
        }
    }

    fn gives(&self) -> bool {
        !self.rests && !self.paused
    }

    /// The slots that are free, and the threads that wait for one.
    pub(super) fn figures(&self) -> (u32, usize) {
        (self.free, self.waiting.len())
    }

    /// Takes a free slot, or stands in line. A thread that had a slot before the start has it again.
    pub(super) fn take(&mut self, waiter: Waiter, at: Precedence, resume: bool) -> bool {
        if let Precedence::Delivered(_) = at {
            match self.free.checked_sub(1) {
                Some(free) => self.free = free,
                None => self.owed += 1,
            }
            return true;
        }
        if self.free > 0 && self.gives() {
            self.free -= 1;
            return true;
        }
        let Waiter { core, thread, root, principal } = waiter;
        self.issued += 1;
        self.standing += 1;
        self.waiting.insert((core, thread), self.issued);
        if let Precedence::Began(_) = at {
            self.begun.push_back(((core, thread), self.issued));
            self.tidy();
            return false;
        }
        let line = self.lines.entry((core, root)).or_insert_with(|| {
            self.queue.push(principal, (core, root));
            Line::default()
        });
        let line = if resume { &mut line.resumes } else { &mut line.starts };
        line.push_back((thread, self.issued));
        self.tidy();
        false
    }

    /// Takes a slot back. The thread that gets it.
    pub(super) fn give_back(&mut self) -> Option<Place> {
        match self.owed.checked_sub(1) {
            Some(owed) => self.owed = owed,
            None => self.free += 1,
        }
        self.grant()
    }

    /// Gives a free slot to the thread that is first in line, if there are both.
    pub(super) fn grant(&mut self) -> Option<Place> {
        if self.free == 0 || !self.gives() {
            return None;
        }
        let next = self.next()?;
        self.waiting.remove(&next);
        self.free -= 1;
        Some(next)
    }

    /// The thread that is first in line, which leaves it.
    fn next(&mut self) -> Option<Place> {
        while let Some((place, number)) = self.begun.pop_front() {
            self.standing -= 1;
            if self.waiting.get(&place) == Some(&number) {
                return Some(place);
            }
        }
        let Self { queue, lines, waiting, standing, .. } = self;
        queue.take(|conversations| {
            let conversation = conversations.pop_front()?;
            let line = lines.get_mut(&conversation)?;
            let (core, before) = (conversation.0, line.len());
            let next = std::iter::from_fn(|| line.pop()).find_map(|(thread, number)| {
                let place = (core, thread);
                (waiting.get(&place) == Some(&number)).then_some(place)
            });
            *standing -= before - line.len();
            if line.len() == 0 {
                lines.remove(&conversation);
            } else {
                conversations.push_back(conversation);
            }
            next
        })
    }

    /// Takes a thread out of the line.
    pub(super) fn decline(&mut self, core: CoreId, thread: ThreadKey) {
        self.waiting.remove(&(core, thread));
        self.tidy();
    }

    /// Removes places that were given up, so that they don't pile up.
    fn tidy(&mut self) {
        if self.standing <= 2 * self.waiting.len() + 64 {
            return;
        }
        let Self { begun, queue, lines, waiting, .. } = self;
        begun.retain(|(place, number)| waiting.get(place) == Some(number));
        lines.retain(|(core, _), line| {
            let holds = |(thread, number): &(ThreadKey, u64)| waiting.get(&(*core, *thread)) == Some(number);
            line.resumes.retain(holds);
            line.starts.retain(holds);
            line.len() > 0
        });
        queue.retain(|conversation| lines.contains_key(conversation));
        self.standing = waiting.len();
    }
}

impl Line {
    fn len(&self) -> usize {
        self.resumes.len() + self.starts.len()
    }

    fn pop(&mut self) -> Option<(ThreadKey, u64)> {
        self.resumes.pop_front().or_else(|| self.starts.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use slotmap::KeyData;

    use super::*;

    fn key(n: u64) -> ThreadKey {
        ThreadKey::from(KeyData::from_ffi(1 << 32 | n))
    }

    /// A thread of a conversation.
    fn of(root: u64, n: u64) -> Waiter {
        Waiter { core: CoreId(0), thread: key(n), root: key(root), principal: Principal::ORGANISM }
    }

    fn given(slots: &mut Slots, times: usize) -> Vec<Option<u64>> {
        let number = |(_, thread)| (0..1 << 20).find(|&n| key(n) == thread).expect("one of ours");
        (0..times).map(|_| slots.give_back().map(number)).collect()
    }

    #[test]
    fn resumes_of_a_conversation_go_first_and_closed_threads_are_skipped() {
        let mut slots = Slots::new(1);
        assert!(slots.take(of(9, 1), Precedence::Later, false));
        for n in 2..5 {
            assert!(!slots.take(of(9, n), Precedence::Later, false));
        }
        assert!(!slots.take(of(9, 5), Precedence::Later, true));
        slots.decline(CoreId(0), key(2));
        assert_eq!(given(&mut slots, 4), [Some(5), Some(3), Some(4), None]);
        assert!(slots.take(of(9, 6), Precedence::Later, false));
    }

    #[test]
    fn handlers_that_had_begun_go_first_in_the_order_in_which_they_had() {
        let mut slots = Slots::new(1);
        assert!(slots.take(of(9, 1), Precedence::Began(4), false));
        slots.take(of(10, 2), Precedence::Began(5), false);
        slots.take(of(9, 3), Precedence::Began(6), false);
        slots.take(of(9, 4), Precedence::Began(7), false);
        slots.take(of(11, 5), Precedence::Waited(1), false);
        slots.take(of(9, 6), Precedence::Later, true);
        slots.decline(CoreId(0), key(3));
        assert_eq!(given(&mut slots, 5), [Some(2), Some(4), Some(5), Some(6), None]);
    }

    #[test]
    fn who_leaves_the_line_and_comes_back_stands_at_the_end_of_its_conversation() {
        for together in [true, false] {
            let mut slots = Slots::new(0);
            let waiter = |n: u64| of(if together { 9 } else { 10 + n }, n);
            for n in 1..4 {
                slots.take(waiter(n), Precedence::Later, false);
            }
            slots.decline(CoreId(0), key(1));
            slots.take(waiter(1), Precedence::Later, false);
            let expected = if together { [Some(2), Some(3), Some(1), None] } else { [Some(1), Some(2), Some(3), None] };
            assert_eq!(given(&mut slots, 4), expected);
        }
    }

    #[test]
    fn conversations_take_turns_however_many_of_each_wait() {
        let mut slots = Slots::new(0);
        for n in 0..1000 {
            slots.take(of(2000, n), Precedence::Later, n % 2 == 0);
        }
        slots.take(of(2001, 1001), Precedence::Later, false);
        slots.take(of(2002, 1002), Precedence::Later, false);
        slots.take(of(2002, 1003), Precedence::Later, true);
        assert_eq!(given(&mut slots, 7), [0, 1001, 1003, 2, 1002, 4, 6].map(Some));
    }

    #[test]
    fn threads_that_had_a_slot_have_it_again_and_it_goes_to_no_other() {
        let mut slots = Slots::new(1);
        (0..3).for_each(|n| assert!(slots.take(of(8, n), Precedence::Delivered(n), false)));
        assert!(!slots.take(of(9, 1), Precedence::Later, false));
        assert_eq!(given(&mut slots, 4), [None, None, Some(1), None]);
        assert!(slots.take(of(9, 2), Precedence::Later, false) && !slots.take(of(9, 3), Precedence::Later, false));
    }

    #[test]
    fn while_a_listener_rests_threads_stand_in_line_and_slots_stay_free() {
        let mut slots = Slots::new(2);
        assert!(slots.take(of(9, 1), Precedence::Later, false));
        slots.rests = true;
        for n in 2..5 {
            assert!(!slots.take(of(9, n), Precedence::Later, n == 4), "a slot is free, but not given");
        }
        assert_eq!(given(&mut slots, 1), [None]);
        slots.rests = false;
        let places: Vec<_> = std::iter::from_fn(|| slots.grant()).map(|(_, thread)| thread).collect();
        assert_eq!(places, [key(4), key(2)], "both slots, in the order of the line");
        assert_eq!(given(&mut slots, 2), [Some(3), None]);
    }

    #[test]
    fn a_line_of_closed_threads_does_not_grow() {
        let mut slots = Slots::new(0);
        for n in 0..10_000 {
            slots.take(of(n % 100 + 20_000, n), Precedence::Later, false);
            slots.decline(CoreId(0), key(n));
        }
        assert!(slots.standing < 100 && slots.lines.len() < 100);
        assert_eq!(given(&mut slots, 1), [None]);
    }
}
