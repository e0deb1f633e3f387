//! Random organisms: a few listeners whose contracts differ in everything that the core minds.

use proptest::prelude::*;
use systole_core::core::*;

use crate::harness::{Setup, World, client, core_qname, listener, meta_qname};
use crate::payloads::{qname, qnames};

/// An organism in numbers.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) listeners: Vec<Member>,
    pub(crate) fanout: usize,
    pub(crate) depth: u32,
    pub(crate) mailbox: usize,
    pub(crate) conversation: usize,
    pub(crate) depth_first: bool,
    pub(crate) events: bool,
}

/// A listener: `l<i>` accepts `q<i>` and answers `a<i>`; the masks are the other listeners that it knows.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) takes_faults: bool,
    pub(crate) takes_ends: bool,
    pub(crate) idle: bool,
    pub(crate) slots: u32,
    /// True if the listener accepts `job`, as all of its kind do.
    pub(crate) broadcast: bool,
    pub(crate) calls: u8,
    pub(crate) calls_job: bool,
    pub(crate) returns: u8,
    /// True if its handlers run on when they are aborted, and never await.
    pub(crate) blocking: bool,
}

pub(crate) const STRIKES: u32 = 3;

pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let members = prop::collection::vec(members(), 1..5);
    let bounds = (3usize..8, 2u32..6, 3usize..9, 6usize..30);
    (members, bounds, prop::bool::weighted(0.2), any::<bool>()).prop_map(|(listeners, bounds, depth_first, events)| {
        let (fanout, depth, mailbox, conversation) = bounds;
        Plan { listeners, fanout, depth, mailbox, conversation, depth_first, events }
    })
}

fn members() -> impl Strategy<Value = Member> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.4));
    let masks = (any::<u8>(), any::<bool>(), prop_oneof![3 => Just(0xff), 1 => any::<u8>()]);
    let slots = prop_oneof![Just(1), Just(2), Just(64)];
    (flags, masks, slots, prop::bool::weighted(0.2)).prop_map(|(flags, masks, slots, blocking)| {
        let (takes_faults, takes_ends, idle, broadcast) = flags;
        let (calls, calls_job, returns) = masks;
        Member { takes_faults, takes_ends, idle, slots, broadcast, calls, calls_job, returns, blocking }
    })
}

impl Plan {
    pub(crate) fn count(&self) -> usize {
        self.listeners.len()
    }

    /// The listeners that a call of `target` goes to; `target` past the last one is `job`.
    pub(crate) fn targets(&self, target: usize) -> Vec<usize> {
        if target < self.count() {
            return vec![target];
        }
        (0..self.count()).filter(|&other| self.listeners[other].broadcast).collect()
    }

    pub(crate) fn may_call(&self, caller: usize, target: usize) -> bool {
        let member = &self.listeners[caller];
        if target < self.count() { member.calls & 1 << target != 0 } else { member.calls_job }
    }

    pub(crate) fn local(&self, target: usize) -> String {
        if target < self.count() { format!("q{target}") } else { "job".to_owned() }
    }

    pub(crate) fn build(&self) -> World {
        self.build_on(1)
    }

    pub(crate) fn build_on(&self, shards: u16) -> World {
        let members = self.listeners.iter().enumerate();
        let mut setup = Setup::new(members.map(|(index, member)| self.contract(index, member)).collect());
        let all: Vec<_> = (0..=self.count()).map(|target| self.local(target)).collect();
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        // Bob may not call the first one.
        setup.clients = vec![client("alice", &all), client("bob", &all[1..])];
        (setup.events, setup.shards) = (self.events, shards);
        let plan = self.clone();
        let mut world = setup.build_with(move |blueprint| {
            blueprint.limits.fanout = plan.fanout;
            blueprint.limits.thread_depth = plan.depth;
            blueprint.limits.mailbox = plan.mailbox;
            blueprint.limits.conversation_threads = plan.conversation;
            if plan.depth_first {
                blueprint.scheduling = Scheduling::DepthFirst;
            }
        });
        for (index, member) in self.listeners.iter().enumerate() {
            if member.blocking {
                world.blocking.insert(format!("l{index}"));
            }
        }
        world
    }

    fn contract(&self, index: usize, member: &Member) -> Contract {
        listener(&format!("l{index}"), |contract| {
            contract.accepts = vec![qname(&format!("q{index}"))];
            contract.replies = vec![qname(&format!("a{index}"))];
            if member.broadcast {
                contract.accepts.push(qname("job"));
                contract.routing = Routing::Broadcast;
            }
            let known = |mask: u8| (0..self.count()).filter(move |other| mask & 1 << other != 0);
            contract.calls = known(member.calls).map(|other| qname(&format!("q{other}"))).collect();
            if member.calls_job {
                contract.calls.extend(qnames(&["job"]));
            }
            contract.returns = known(member.returns).map(|other| qname(&format!("a{other}"))).collect();
            contract.returns.push(meta_qname("thread-spawned"));
            if member.takes_ends {
                contract.returns.push(core_qname("fan-out-ended"));
            }
            contract.accepts_faults = member.takes_faults;
            contract.silence = if member.idle { Silence::Idle } else { Silence::Error };
            contract.concurrency = member.slots;
            contract.can_park = !member.blocking;
        })
    }
}
