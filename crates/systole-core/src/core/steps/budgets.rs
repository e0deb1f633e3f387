//! Budgets at work: accounts for new threads, charges for calls, reservations for requests to models.

use super::Core;
use crate::core::blueprint::ListenerId;
use crate::core::event::EventKind;
use crate::core::io::{Output, Settled};
use crate::core::key::{InvocationId, ThreadKey};
use crate::core::tree::Owner;
use crate::core::usage::Usage;
use crate::journal::BudgetRecord;
use crate::vocab::{Amounts, Budget, Fault, FaultCode, ThreadId, Time};

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

impl Core {
    /// The budgets of the open threads, in order of opening.
    pub fn budgets(&self) -> Vec<OpenBudget> {
        if self.budgets.is_empty() {
            return Vec::new();
        }
        let open = |key| {
            let account = self.budgets.get(key)?;
            let (budget, spent, reserved) = (account.budget, account.spent, account.reserved);
            Some(OpenBudget { thread: self.tree[key].id, budget, spent, reserved })
        };
        self.tree.in_order(|_| true).into_iter().filter_map(open).collect()
    }

    /// The budget of a root, if it has one: that of the organism, narrowed by that of its client.
    pub(super) fn root_budget(&self, owner: Owner) -> Option<Box<Budget>> {
        let blueprint = &self.setup.blueprint;
        match owner {
            Owner::Client(client) => narrowed(&blueprint.budget, &blueprint.principal(client).budget),
            Owner::Listener(_) | Owner::None => narrowed(&blueprint.budget, &Budget::NONE),
        }
    }

    /// The budget of a thread of a listener, if it has one: that of its contract, narrowed by that of the message that
    /// opens it.
    pub(super) fn child_budget(&self, listener: ListenerId, of_message: Option<Box<Budget>>) -> Option<Box<Budget>> {
        narrowed(&self.setup.blueprint.contract(listener).budget, of_message.as_deref().unwrap_or(&Budget::NONE))
    }

    /// The end of a thread that opens now, as its budget bounds it.
    pub(super) fn end_of(&self, budget: Option<&Budget>) -> Time {
        budget.and_then(|budget| budget.time).map_or(Time::MAX, |time| self.step.clock.now().after(time))
    }

    /// Opens the account of a thread that has just opened, if it has a budget.
    pub(super) fn open_account(&mut self, key: ThreadKey, budget: Option<Box<Budget>>) {
        let Some(budget) = budget.map(|budget| budget.time(None)).filter(|budget| !budget.is_none()) else {
            return;
        };
        let above = self.budgets.nearest(self.tree.upward(key));
        let record = BudgetRecord { thread: self.tree[key].sequence, budget, spent: Amounts::default() };
        self.budgets.open(key, record, above, Some(&mut self.step));
    }

    /// Opens the account of a recovered thread. Those of the threads above it are open.
    pub(super) fn recover_account(&mut self, key: ThreadKey, record: BudgetRecord) {
        let above = self.budgets.nearest(self.tree.upward(key));
        self.budgets.open(key, record, above, None);
    }

    /// The account to which a use of a thread is charged.
    pub(super) fn account(&self, key: ThreadKey) -> Option<ThreadKey> {
        if self.budgets.is_empty() {
            return None;
        }
        self.budgets.nearest(self.tree.upward(key))
    }

    /// Charges a call of a thread, which opens so many threads.
    pub(super) fn charge_call(&mut self, caller: ThreadKey, threads: u64) -> Result<(), Fault> {
        match self.account(caller) {
            Some(account) => {
                let amounts = Amounts { calls: 1, threads, ..Amounts::default() };
                self.budgets.charge(account, amounts, &mut self.step)
            }
            None => Ok(()),
        }
    }

    /// Reserves amounts for a request of a handler. `is_last`: it is the last one of its thread, for which nothing more is left.
    pub(super) fn reserve(&mut self, invocation: InvocationId, amounts: Amounts, is_last: Option<Fault>) {
        let thread = self.invocations.thread(invocation);
        let account = thread.and_then(|thread| self.account(thread));
        let result =
            account.map_or(Ok(()), |account| self.budgets.reserve(invocation, account, amounts, &mut self.step));
        if let (Some(thread), Some(fault), Ok(())) = (thread.filter(|_| account.is_some()), is_last, &result) {
            self.budgets.note_refusal(thread, &fault);
            self.budgets.note_learned(thread);
        }
        self.step.out.emit(Output::Reserved { invocation, result });
    }

    /// Charges what a request to a model used, with an answer or without.
    pub(super) fn charge_usage(&mut self, invocation: InvocationId, usage: Usage) {
        if self.budgets.is_empty() {
            return;
        }
        let account = self.invocations.thread(invocation).and_then(|thread| self.account(thread));
        self.budgets.settle(invocation, account, usage.into(), &mut self.step);
    }

    /// Notes that a call of a thread was refused, if a budget is why.
    pub(super) fn note_refusal(&mut self, key: ThreadKey, fault: &Fault) {
        if fault.code == FaultCode::Budget && !self.budgets.is_empty() {
            self.budgets.note_refusal(key, fault);
        }
    }

    /// Notes that a handler learns of such a refusal by a result that it awaited.
    pub(super) fn learn_result(&mut self, key: ThreadKey, result: &Result<Vec<Settled>, Fault>) {
        if self.budgets.is_empty() {
            return;
        }
        let is_budget = |fault: &Fault| fault.code == FaultCode::Budget;
        let learns = match result {
            Ok(settled) => settled.iter().any(|settled| settled.outcome.as_ref().is_err_and(is_budget)),
            Err(fault) => is_budget(fault),
        };
        if learns {
            self.budgets.note_learned(key);
        }
    }

    /// Notes that a handler learns of such a refusal by a message.
    pub(super) fn learn_fault(&mut self, key: ThreadKey, fault: &Fault) {
        if fault.code == FaultCode::Budget {
            self.budgets.note_learned(key);
        }
    }

    /// Closes the account of a thread that closes.
    pub(super) fn close_account(&mut self, key: ThreadKey) {
        if self.budgets.is_empty() {
            return;
        }
        if let Some(account) = self.budgets.close(key) {
            let (budget, spent) = (account.budget, account.spent);
            self.tree.event(key, &mut self.step, || EventKind::Spent { budget, spent });
        }
    }
}

/// The smaller amounts of both, if either bounds anything. In a box, since mostly there are none, and a call holds them.
fn narrowed(budget: &Budget, by: &Budget) -> Option<Box<Budget>> {
    if budget.is_none() && by.is_none() { None } else { Some(Box::new(budget.narrowed(*by))) }
}
