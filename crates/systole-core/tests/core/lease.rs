//! Leases in simulated time: nodes whose clocks differ, which stop for a while, and a network that delays, doubles and loses
//! questions and answers. Two nodes never believe at once that they may work.

use std::time::Duration;

use systole_core::lease::{Answer, Ask, Effect, End, Holder, Input, Lease, interval, usable};

const LENGTH: Duration = Duration::from_secs(10);
/// The step of the simulation.
const STEP: Duration = Duration::from_millis(20);
const NODES: usize = 3;
/// The time with trouble, and the time without that follows.
const TROUBLE: Duration = Duration::from_secs(90);
const CALM: Duration = Duration::from_secs(40);

/// Random numbers of a seed: xorshift64*, <https://doi.org/10.18637/jss.v008.i14>.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }

    /// A time up to that one.
    fn time(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap().max(1)))
    }
}

/// A clock that shows `offset` at the start, and goes at another speed than real time.
struct Clock {
    offset: Duration,
    /// Thousandths of the speed of real time.
    speed: u32,
}

impl Clock {
    fn draw(dice: &mut Dice) -> Self {
        let speed = 950 + u32::try_from(dice.below(101)).unwrap();
        Self { offset: dice.time(Duration::from_secs(100_000)), speed }
    }

    fn at(&self, now: Duration) -> Duration {
        self.offset + now * self.speed / 1000
    }
}

/// The row of the database, as its clock shows it.
#[derive(Default)]
struct Row {
    process: u128,
    term: i64,
    until: Duration,
    handed_over: bool,
}

/// The database answers as `systole_store` makes it answer.
struct Database {
    clock: Clock,
    row: Row,
}

impl Database {
    fn answer(&mut self, process: u128, ask: Ask, now: Duration) -> Answer {
        let now = self.clock.at(now);
        let before = (self.row.term > 0).then(|| Holder {
            node: format!("{}", self.row.process).into(),
            url: "".into(),
            process: self.row.process,
            term: self.row.term,
            left: self.row.until.saturating_sub(now),
            handed_over: self.row.handed_over,
        });
        let row = &mut self.row;
        let is = |term| row.process == process && row.term == term;
        match ask {
            Ask::Take if row.until <= now || row.process == process => {
                *row = Row { process, term: row.term + 1, until: now + LENGTH, handed_over: false };
                Answer::Taken { term: row.term, before }
            }
            Ask::Renew { term } if is(term) && row.until > now => {
                row.until = now + LENGTH;
                Answer::Renewed
            }
            Ask::Release { term } => {
                if is(term) && row.until > now {
                    (row.until, row.handed_over) = (now, true);
                }
                Answer::Released
            }
            Ask::Look | Ask::Take | Ask::Renew { .. } => Answer::Found(before),
        }
    }
}

struct Node {
    clock: Clock,
    lease: Lease,
    /// The process is stopped until that time: it handles nothing, and its clock goes on.
    stopped_until: Duration,
    /// The time at which it ends its work in order.
    ends_at: Option<Duration>,
    /// True while the organism of a lease that has ended still ends itself.
    ending_until: Option<Duration>,
    term: i64,
}

/// What is on its way: it arrives at that time.
enum Carried {
    Question { number: u64, ask: Ask },
    Answer { number: u64, answer: Answer },
}

struct World {
    dice: Dice,
    now: Duration,
    database: Database,
    nodes: Vec<Node>,
    carried: Vec<(Duration, usize, Carried)>,
    takeovers: u64,
    hand_overs: u64,
    lapses: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let database = Database { clock: Clock::draw(&mut dice), row: Row::default() };
        let nodes = (0..NODES).map(|node| Node {
            clock: Clock::draw(&mut dice),
            lease: Lease::new(LENGTH, node as u128 + 1),
            stopped_until: Duration::ZERO,
            ends_at: None,
            ending_until: Some(Duration::ZERO),
            term: 0,
        });
        let nodes = nodes.collect();
        let (now, carried) = (Duration::ZERO, Vec::new());
        Self { dice, now, database, nodes, carried, takeovers: 0, hand_overs: 0, lapses: 0 }
    }

    fn is_troubled(&self) -> bool {
        self.now < TROUBLE
    }

    /// Puts something on its way, which may take long, arrive twice or never.
    fn send(&mut self, node: usize, carried: impl Fn() -> Carried) {
        let (lost, doubled) = match self.is_troubled() {
            true => (self.dice.below(5) == 0, self.dice.below(10) == 0),
            false => (false, false),
        };
        if lost {
            return;
        }
        for _ in 0..=usize::from(doubled) {
            let most = if self.is_troubled() && self.dice.below(4) == 0 { LENGTH * 2 } else { LENGTH / 50 };
            let delay = self.dice.time(most);
            self.carried.push((self.now + delay, node, carried()));
        }
    }

    fn input(&mut self, node: usize, input: Input) {
        let now = self.nodes[node].clock.at(self.now);
        for effect in self.nodes[node].lease.handle(input, now) {
            match effect {
                Effect::Ask(number, ask) => self.send(node, || Carried::Question { number, ask }),
                Effect::Begin { term, before, .. } => {
                    assert!(term > self.nodes[node].term, "terms rise");
                    self.nodes[node].term = term;
                    self.takeovers += 1;
                    self.hand_overs += u64::from(before.is_some_and(|before| before.handed_over));
                    let work = self.dice.time(LENGTH * 6);
                    self.nodes[node].ends_at = self.is_troubled().then(|| self.now + work);
                }
                Effect::End(why) => {
                    self.lapses += u64::from(why == End::Lapsed);
                    // It ends its work, and stands by again.
                    let work = self.dice.time(LENGTH / 2);
                    self.nodes[node].ends_at = None;
                    self.nodes[node].ending_until = Some(self.now + work);
                }
                Effect::Released => self.nodes[node].ending_until = Some(self.now),
                Effect::Extend(_) | Effect::Found(_) => {}
            }
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let due: Vec<_> = {
            let now = self.now;
            let nodes = &self.nodes;
            self.carried
                .extract_if(.., |(at, node, carried)| {
                    // A stopped process reads its answers when it goes on; the database is never stopped.
                    let is_read = matches!(carried, Carried::Question { .. }) || nodes[*node].stopped_until <= now;
                    *at <= now && is_read
                })
                .collect()
        };
        for (_, node, carried) in due {
            match carried {
                Carried::Question { number, ask } => {
                    let answer = self.database.answer(node as u128 + 1, ask, self.now);
                    self.send(node, || Carried::Answer { number, answer: answer.clone() });
                }
                Carried::Answer { number, answer } => self.input(node, Input::Answered(number, answer)),
            }
        }
        for node in 0..NODES {
            if self.nodes[node].stopped_until > self.now {
                continue;
            }
            if self.is_troubled() {
                match self.dice.below(3_000) {
                    0..=2 => self.nodes[node].stopped_until = self.now + self.dice.time(LENGTH * 3),
                    3..=9 => self.input(node, Input::Poke),
                    10 => {
                        let rest = self.dice.time(LENGTH);
                        self.input(node, Input::Rest(rest));
                    }
                    _ => {}
                }
            }
            if self.nodes[node].ends_at.take_if(|at| *at <= self.now).is_some() && self.is_troubled() {
                self.input(node, Input::Release);
            }
            if self.nodes[node].ending_until.take_if(|at| *at <= self.now).is_some() {
                self.input(node, Input::StandBy);
            }
            if self.nodes[node].clock.at(self.now) >= self.nodes[node].lease.next_tick() {
                self.input(node, Input::Tick);
            }
        }
        self.check();
    }

    fn working(&self) -> Vec<usize> {
        // Also a stopped process: its threads may go on at any moment.
        let works = |node: &usize| self.nodes[*node].lease.may_work(self.nodes[*node].clock.at(self.now));
        (0..NODES).filter(works).collect()
    }

    fn check(&self) {
        let working = self.working();
        assert!(working.len() < 2, "{working:?} believe at once that they may work");
        if let [node] = working[..] {
            let row = &self.database.row;
            assert_eq!(row.process, node as u128 + 1, "it is the one that has the lease");
            assert!(row.until > self.database.clock.at(self.now), "its lease has not ended in the database");
        }
    }
}

#[test]
fn two_nodes_never_believe_at_once_that_they_may_work() {
    let histories = std::env::var("SYSTOLE_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let (mut takeovers, mut hand_overs, mut lapses) = (0, 0, 0);
    for seed in 1..=histories {
        let mut world = World::new(seed);
        while world.now < TROUBLE + CALM {
            world.step();
        }
        assert_eq!(world.working().len(), 1, "seed {seed}: one works once the trouble is over");
        takeovers += world.takeovers;
        hand_overs += world.hand_overs;
        lapses += world.lapses;
    }
    println!("{histories} histories: {takeovers} takeovers, {hand_overs} of them handed over, {lapses} leases lapsed");
    assert!(takeovers > histories * 4, "leases hardly move: {takeovers}");
    assert!(hand_overs > histories / 10, "they are hardly handed over: {hand_overs}");
    assert!(lapses > histories, "they hardly lapse: {lapses}");
}

/// The question that an input leads to.
fn asked(effects: &[Effect]) -> (u64, Ask) {
    match effects {
        [Effect::Ask(number, ask)] | [.., Effect::Ask(number, ask)] => (*number, *ask),
        other => panic!("it asks: {other:?}"),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A machine that has the lease since its question at 100 s.
fn holding() -> Lease {
    let mut lease = Lease::new(LENGTH, 1);
    let (number, ask) = asked(&lease.handle(Input::StandBy, secs(100)));
    assert_eq!(ask, Ask::Take);
    lease.handle(Input::Answered(number, Answer::Taken { term: 7, before: None }), secs(101));
    lease
}

#[test]
fn a_lease_counts_from_before_its_question_was_sent() {
    let lease = holding();
    assert!(lease.may_work(secs(107)));
    assert!(!lease.may_work(secs(100) + usable(LENGTH)), "not from the answer on");
}

#[test]
fn a_grant_that_comes_too_late_begins_nothing() {
    let mut lease = Lease::new(secs(10), 1);
    let (number, _) = asked(&lease.handle(Input::StandBy, secs(100)));
    // No tick in between: the process was stopped.
    let effects = lease.handle(Input::Answered(number, Answer::Taken { term: 1, before: None }), secs(108));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Begin { .. })), "{effects:?}");
    assert!(!lease.may_work(secs(108)));
}

#[test]
fn a_process_that_was_stopped_past_its_lease_may_not_work_and_learns_it_by_any_input() {
    let mut lease = holding();
    assert!(!lease.may_work(secs(120)), "before any input");
    let effects = lease.handle(Input::Poke, secs(120));
    assert_eq!(effects[0], Effect::End(End::Lapsed));
    assert_eq!(asked(&effects).1, Ask::Look, "it takes none before it stands by again");
}

#[test]
fn a_lease_is_renewed_at_a_third_and_a_lost_answer_is_asked_for_again() {
    let mut lease = holding();
    let due = secs(100) + interval(LENGTH);
    assert_eq!(lease.next_tick(), due);
    let (first, ask) = asked(&lease.handle(Input::Tick, due));
    assert_eq!(ask, Ask::Renew { term: 7 });
    let (second, _) = asked(&lease.handle(Input::Tick, due + interval(LENGTH)));
    assert_eq!(lease.handle(Input::Answered(first, Answer::Renewed), due + interval(LENGTH)), [], "it was given up");
    let until = due + interval(LENGTH) + usable(LENGTH);
    assert_eq!(lease.handle(Input::Answered(second, Answer::Renewed), secs(107)), [Effect::Extend(until)]);
}

#[test]
fn a_lease_that_another_has_ends_at_once() {
    let mut lease = holding();
    let (number, _) = asked(&lease.handle(Input::Tick, secs(104)));
    let other = Holder { node: "b".into(), url: "".into(), process: 2, term: 8, left: secs(9), handed_over: false };
    let effects = lease.handle(Input::Answered(number, Answer::Found(Some(other.clone()))), secs(104));
    assert_eq!(effects[..2], [Effect::End(End::Lost), Effect::Found(Some(other))]);
    assert!(!lease.may_work(secs(104)));
}

#[test]
fn a_node_that_left_while_the_lease_was_granted_gives_it_back() {
    let mut lease = Lease::new(LENGTH, 1);
    let (number, _) = asked(&lease.handle(Input::StandBy, secs(100)));
    lease.handle(Input::Leave, secs(100));
    let effects = lease.handle(Input::Answered(number, Answer::Taken { term: 3, before: None }), secs(101));
    assert_eq!(asked(&effects).1, Ask::Release { term: 3 });
}
