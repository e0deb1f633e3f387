//! The budgets of threads: an account for each thread that has one, with what was spent and what is reserved.
//!
//! A use is charged to the account of its thread, or to the nearest one above it, and to all accounts above that. So a
//! child has at most what its parent has left, and children that run at the same time share it: a charge that does not
//! fit into each of these accounts changes none. What was spent is never given back.
//!
//! A reservation belongs to a request that a handler is about to send, and a provider may bill the request from then on.
//! So it is spent, unless it is settled by what the request used: also where the handler ends before, is cancelled, or
//! makes another reservation. The journal has what was spent and what is reserved as one sum: a reservation of a process
//! that was killed is spent. One whose request has one effect, however often it is sent, is taken up again by the handler
//! that runs again.

use std::collections::HashMap;

use super::faults;
use super::key::{InvocationId, ThreadKey};
use super::setup::StepContext;
use crate::journal::{BudgetRecord, Number, Op};
use crate::vocab::{Amounts, Budget, Fault, Millionths, ThreadId};

/// A reservation that does not fit into a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// The fault for the caller of the thread.
    pub fault: Fault,
    /// The tokens and the cost that are left, where they are bounded.
    pub left: Budget,
}

/// The accounts of a core.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    accounts: HashMap<ThreadKey, Account>,
    /// Reservations for requests in flight, with the accounts that have them.
    held: HashMap<InvocationId, (Vec<ThreadKey>, Amounts)>,
    /// Threads for which something was refused, as no budget was left for it.
    refusals: HashMap<ThreadKey, Refusal>,
}

/// A budget that its thread may use up, as the core shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBudget {
    /// The thread.
    pub thread: ThreadId,
    /// The most that it and the threads below it may use.
    pub budget: Budget,
    /// The amounts that were used.
    pub spent: Amounts,
    /// The amounts that are reserved for requests in flight.
    pub reserved: Amounts,
}

/// The budget of a thread, and its use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    /// The number of the thread.
    pub thread: Number,
    pub budget: Budget,
    pub spent: Amounts,
    pub reserved: Amounts,
    /// The nearest account above it.
    above: Option<ThreadKey>,
}

/// A refusal for want of a budget.
#[derive(Debug)]
struct Refusal {
    fault: Fault,
    /// States whether the thread has had its turn to hand back what there is.
    is_learned: bool,
    /// Awaited calls that were refused since then: its handler may have made them before it learned of the first refusal.
    late: usize,
}

impl Account {
    /// The amounts that are left, where they are bounded.
    fn left(&self) -> Budget {
        let used = self.spent.plus(self.reserved);
        Budget::NONE
            .tokens(self.budget.tokens.map(|most| most.saturating_sub(used.tokens)))
            .cost(self.budget.cost.map(|most| Millionths(most.0.saturating_sub(used.cost.0))))
            .calls(self.budget.calls.map(|most| most.saturating_sub(used.calls)))
            .threads(self.budget.threads.map(|most| most.saturating_sub(used.threads)))
    }

    /// Checks that there is room for a use.
    fn check(&self, amounts: Amounts) -> Result<(), Fault> {
        let (budget, left, reserved) = (&self.budget, self.left(), self.reserved);
        for (kind, most, left, reserved, wanted) in [
            ("calls", budget.calls, left.calls, reserved.calls, amounts.calls),
            ("threads", budget.threads, left.threads, reserved.threads, amounts.threads),
            ("tokens", budget.tokens, left.tokens, reserved.tokens, amounts.tokens),
        ] {
            if let (Some(most), Some(left)) = (most, left)
                && wanted > left
            {
                return Err(faults::budget(kind, most, left, reserved, wanted));
            }
        }
        match (budget.cost, left.cost) {
            (Some(most), Some(left)) if amounts.cost > left => {
                Err(faults::budget("units of cost", most, left, reserved.cost, amounts.cost))
            }
            _ => Ok(()),
        }
    }
}

impl Budgets {
    /// Returns whether no thread has a budget, as in most organisms: each step asks this first.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.held.is_empty()
    }

    /// Opens the account of a thread.
    pub(super) fn open(
        &mut self,
        key: ThreadKey,
        record: BudgetRecord,
        above: Option<ThreadKey>,
        step: Option<&mut StepContext>,
    ) {
        let BudgetRecord { thread, budget, spent } = record;
        if let Some(step) = step {
            step.out.write(|| Op::Budget(record));
        }
        self.accounts.insert(key, Account { thread, budget, spent, reserved: Amounts::default(), above });
    }

    /// The first of these threads that has an account.
    pub(super) fn nearest(&self, mut threads: impl Iterator<Item = ThreadKey>) -> Option<ThreadKey> {
        threads.find(|key| self.accounts.contains_key(key))
    }

    /// Charges an account and all above it, or none of them.
    pub(super) fn charge(&mut self, at: ThreadKey, amounts: Amounts, step: &mut StepContext) -> Result<(), Fault> {
        let accounts = self.chain(Some(at));
        self.check(&accounts, amounts)?;
        self.spend(&accounts, amounts, step);
        Ok(())
    }

    /// Reserves amounts for a request of a handler.
    pub(super) fn reserve(
        &mut self,
        invocation: InvocationId,
        at: ThreadKey,
        amounts: Amounts,
        step: &mut StepContext,
    ) -> Result<(), Box<Short>> {
        self.forfeit(invocation, step);
        let accounts = self.chain(Some(at));
        if let Err(fault) = self.check(&accounts, amounts) {
            let left = accounts.iter().filter_map(|key| self.accounts.get(key)).map(Account::left);
            let left = left.reduce(Budget::narrowed).unwrap_or(Budget::NONE);
            return Err(Box::new(Short { fault, left }));
        }
        self.change(&accounts, step, |account| account.reserved = account.reserved.plus(amounts));
        self.held.insert(invocation, (accounts, amounts));
        Ok(())
    }

    /// Makes amounts that were spent as the reserve of a killed process a reserve again. What is left stays as it is.
    pub(super) fn reclaim(
        &mut self,
        invocation: InvocationId,
        at: ThreadKey,
        amounts: Amounts,
        step: &mut StepContext,
    ) {
        self.forfeit(invocation, step);
        let accounts = self.chain(Some(at));
        self.change(&accounts, step, |account| {
            account.spent = account.spent.minus(amounts);
            account.reserved = account.reserved.plus(amounts);
        });
        self.held.insert(invocation, (accounts, amounts));
    }

    /// Charges what a request of a handler used, instead of what was reserved for it. It has been used, so that it is
    /// charged even if it is more than was left.
    pub(super) fn settle(
        &mut self,
        invocation: InvocationId,
        at: Option<ThreadKey>,
        used: Amounts,
        step: &mut StepContext,
    ) {
        match self.held.remove(&invocation) {
            Some((accounts, reserved)) => self.change(&accounts, step, |account| {
                account.reserved = account.reserved.minus(reserved);
                account.spent = account.spent.plus(used);
            }),
            None => self.spend(&self.chain(at), used, step),
        }
    }

    /// Spends what is reserved for a request of a handler that ends without a word on its use, if there is anything.
    #[inline]
    pub(super) fn forfeit(&mut self, invocation: InvocationId, step: &mut StepContext) {
        if let Some(&(_, reserved)) = self.held.get(&invocation) {
            self.settle(invocation, None, reserved, step);
        }
    }

    /// Notes that something was refused for a thread, as no budget was left for it.
    pub(super) fn note_refusal(&mut self, key: ThreadKey, fault: &Fault) {
        self.refusals.entry(key).or_insert_with(|| Refusal {
            fault: Fault { rule: None, ..fault.clone() },
            is_learned: false,
            late: 0,
        });
    }

    /// Notes that the handler of a thread learns of it now: it has its turn.
    pub(super) fn note_learned(&mut self, key: ThreadKey) {
        if let Some(refusal) = self.refusals.get_mut(&key) {
            refusal.is_learned = true;
        }
    }

    /// Returns whether a thread has had its turn to answer after a refusal.
    pub(super) fn is_over(&self, key: ThreadKey) -> bool {
        self.refusals.get(&key).is_some_and(|refusal| refusal.is_learned)
    }

    /// Refuses an awaited call of a thread that has had its turn; `None` past `most` of them.
    pub(super) fn refuse_late(&mut self, key: ThreadKey, most: usize) -> Option<Fault> {
        let refusal = self.refusals.get_mut(&key).filter(|refusal| refusal.late < most)?;
        refusal.late += 1;
        Some(refusal.fault.clone())
    }

    /// The first refusal of a thread, if there was one.
    pub(super) fn refusal(&self, key: ThreadKey) -> Option<&Fault> {
        self.refusals.get(&key).map(|refusal| &refusal.fault)
    }

    /// Forgets the refusals of a thread, which begins another call.
    pub(super) fn forget_refusals(&mut self, key: ThreadKey) {
        self.refusals.remove(&key);
    }

    /// Closes the account of a thread that closes.
    pub(super) fn close(&mut self, key: ThreadKey) -> Option<Account> {
        self.refusals.remove(&key);
        self.accounts.remove(&key)
    }

    /// The account of a thread.
    pub(super) fn get(&self, key: ThreadKey) -> Option<&Account> {
        self.accounts.get(&key)
    }

    fn chain(&self, from: Option<ThreadKey>) -> Vec<ThreadKey> {
        std::iter::successors(from, |key| self.accounts.get(key)?.above).collect()
    }

    fn check(&self, accounts: &[ThreadKey], amounts: Amounts) -> Result<(), Fault> {
        accounts.iter().filter_map(|key| self.accounts.get(key)).try_for_each(|account| account.check(amounts))
    }

    fn spend(&mut self, accounts: &[ThreadKey], amounts: Amounts, step: &mut StepContext) {
        if amounts != Amounts::default() {
            self.change(accounts, step, |account| account.spent = account.spent.plus(amounts));
        }
    }

    /// Changes accounts, and writes them down, but for those whose threads have closed.
    fn change(&mut self, accounts: &[ThreadKey], step: &mut StepContext, change: impl Fn(&mut Account)) {
        for key in accounts {
            let Some(account) = self.accounts.get_mut(key) else { continue };
            change(account);
            let Account { thread, budget, spent, reserved, .. } = *account;
            step.out.write(|| Op::Budget(BudgetRecord { thread, budget, spent: spent.plus(reserved) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use slotmap::SlotMap;

    use super::*;
    use crate::core::books::Books;
    use crate::core::clock::Clock;
    use crate::core::directory::Directory;
    use crate::core::outputs::Outputs;
    use crate::vocab::Time;

    const ACCOUNTS: usize = 5;

    #[derive(Debug, Clone)]
    enum Act {
        Charge(usize, Amounts),
        Reserve(usize, usize, Amounts),
        Settle(usize, usize, Amounts),
        Forfeit(usize),
    }

    fn amounts() -> impl Strategy<Value = Amounts> {
        let few = || 0..6_u64;
        (few(), few(), few(), few()).prop_map(|(tokens, cost, calls, threads)| Amounts {
            tokens,
            cost: Millionths(cost),
            calls,
            threads,
        })
    }

    fn act() -> impl Strategy<Value = Act> {
        let (at, invocation) = (|| 0..ACCOUNTS, || 0..3_usize);
        prop_oneof![
            (at(), amounts()).prop_map(|(at, amounts)| Act::Charge(at, amounts)),
            (invocation(), at(), amounts()).prop_map(|(invocation, at, amounts)| Act::Reserve(invocation, at, amounts)),
            (invocation(), at(), amounts()).prop_map(|(invocation, at, amounts)| Act::Settle(invocation, at, amounts)),
            invocation().prop_map(Act::Forfeit),
        ]
    }

    fn budget() -> impl Strategy<Value = Budget> {
        let most = || proptest::option::of(0..25_u64);
        (most(), most(), most(), most()).prop_map(|(tokens, cost, calls, threads)| {
            Budget::NONE.tokens(tokens).cost(cost.map(Millionths)).calls(calls).threads(threads)
        })
    }

    /// The reference of the budgets: all uses, each with the account that it was charged to.
    struct Uses {
        /// The accounts above each, itself among them.
        chains: Vec<Vec<usize>>,
        budgets: Vec<Budget>,
        spent: Vec<(usize, Amounts)>,
        held: BTreeMap<usize, (usize, Amounts)>,
    }

    impl Uses {
        fn sum<'a>(&self, at: usize, uses: impl Iterator<Item = &'a (usize, Amounts)>) -> Amounts {
            let below = uses.filter(|(of, _)| self.chains[*of].contains(&at));
            below.fold(Amounts::default(), |sum, (_, amounts)| sum.plus(*amounts))
        }

        fn fits(&self, at: usize, amounts: Amounts) -> bool {
            self.chains[at].iter().all(|&at| {
                let Budget { tokens, cost, calls, threads, .. } = self.budgets[at];
                let used = self.sum(at, self.spent.iter()).plus(self.sum(at, self.held.values())).plus(amounts);
                // What was used in spite of its budget doesn't keep out what uses nothing of that kind.
                let within = |most: Option<u64>, used, asked| asked == 0 || most.is_none_or(|most| used <= most);
                within(tokens, used.tokens, amounts.tokens)
                    && within(cost.map(|cost| cost.0), used.cost.0, amounts.cost.0)
                    && within(calls, used.calls, amounts.calls)
                    && within(threads, used.threads, amounts.threads)
            })
        }
    }

    proptest! {
        /// Each account has the sum of what was used at and below it, and what does not fit into all above changes none.
        #[test]
        fn accounts_have_the_sums_of_all_uses(
            above in proptest::collection::vec(0..ACCOUNTS, ACCOUNTS),
            budgets in proptest::collection::vec(budget(), ACCOUNTS),
            acts in proptest::collection::vec(act(), 0..60),
        ) {
            let (clock, books) = (Clock::new(Time::default()), Books::default());
            let mut step = StepContext { clock, books, out: Outputs::new(true, false, Directory::default()) };
            let (mut threads, mut invocations) = (SlotMap::<ThreadKey, ()>::with_key(), SlotMap::<InvocationId, ()>::with_key());
            let threads: Vec<_> = (0..ACCOUNTS).map(|_| threads.insert(())).collect();
            let invocations: Vec<_> = (0..3).map(|_| invocations.insert(())).collect();
            let mut accounts = Budgets::default();
            let mut uses = Uses { chains: Vec::new(), budgets, spent: Vec::new(), held: BTreeMap::new() };
            for at in 0..ACCOUNTS {
                let parent = Some(above[at]).filter(|&parent| parent < at);
                let chain = [vec![at], parent.map_or_else(Vec::new, |parent| uses.chains[parent].clone())].concat();
                uses.chains.push(chain);
                let record = BudgetRecord { thread: at as u64, budget: uses.budgets[at], spent: Amounts::default() };
                accounts.open(threads[at], record, parent.map(|parent| threads[parent]), None);
            }
            for act in acts {
                match act {
                    Act::Charge(at, amounts) => {
                        let fits = uses.fits(at, amounts);
                        prop_assert_eq!(accounts.charge(threads[at], amounts, &mut step).is_ok(), fits);
                        uses.spent.extend(fits.then_some((at, amounts)));
                    }
                    Act::Reserve(invocation, at, amounts) => {
                        uses.spent.extend(uses.held.remove(&invocation));
                        let fits = uses.fits(at, amounts);
                        let reserved = accounts.reserve(invocations[invocation], threads[at], amounts, &mut step);
                        prop_assert_eq!(reserved.is_ok(), fits);
                        uses.held.extend(fits.then_some((invocation, (at, amounts))));
                    }
                    Act::Settle(invocation, at, amounts) => {
                        let at = uses.held.remove(&invocation).map_or(at, |(at, _)| at);
                        accounts.settle(invocations[invocation], Some(threads[at]), amounts, &mut step);
                        uses.spent.push((at, amounts));
                    }
                    Act::Forfeit(invocation) => {
                        accounts.forfeit(invocations[invocation], &mut step);
                        uses.spent.extend(uses.held.remove(&invocation));
                    }
                }
                for (at, &thread) in threads.iter().enumerate() {
                    let account = accounts.get(thread).expect("it is open");
                    prop_assert_eq!(account.spent, uses.sum(at, uses.spent.iter()));
                    prop_assert_eq!(account.reserved, uses.sum(at, uses.held.values()));
                }
            }
        }
    }
}
