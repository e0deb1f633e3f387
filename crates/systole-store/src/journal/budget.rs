//! The budgets of threads as rows.

use rusqlite::types::ToSqlOutput;
use systole_core::journal::{BudgetRecord, Number};
use systole_core::vocab::{Amounts, Budget, Millionths};

use super::apply::{Apply, over};
use super::reader::JournalReader;
use super::row::{Cells, Record, number, optional_number, statements};
use crate::sqlite::FileProblem;

impl Record for BudgetRecord {
    statements!(
        "budget",
        "thread = ?1",
        "ended",
        "thread, tokens, cost, calls, threads, spent_tokens, spent_cost, spent_calls, spent_threads",
        "?, ?, ?, ?, ?, ?, ?, ?, ?"
    );

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let Self { thread, budget, spent } = self;
        cell(number(*thread))?;
        cell(optional_number(budget.tokens))?;
        cell(optional_number(budget.cost.map(|cost| cost.0)))?;
        cell(optional_number(budget.calls))?;
        cell(optional_number(budget.threads))?;
        cell(number(spent.tokens))?;
        cell(number(spent.cost.0))?;
        cell(number(spent.calls))?;
        cell(number(spent.threads))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            thread: cells.number()?,
            budget: Budget::NONE
                .tokens(cells.optional_number()?)
                .cost(cells.optional_number()?.map(Millionths))
                .calls(cells.optional_number()?)
                .threads(cells.optional_number()?),
            spent: Amounts {
                tokens: cells.number()?,
                cost: Millionths(cells.number()?),
                calls: cells.number()?,
                threads: cells.number()?,
            },
        })
    }
}

impl Apply<'_> {
    pub(super) fn budget(&mut self, budget: &BudgetRecord) -> Result<(), FileProblem> {
        self.known.budgeted.insert(budget.thread);
        self.hold(*budget)
    }

    /// Ends the budget of a thread that closes, if it has one.
    pub(super) fn end_budget(&mut self, thread: Number) -> Result<(), FileProblem> {
        match self.known.budgeted.remove(&thread) {
            true => self.end_kept::<BudgetRecord>([thread.cast_signed()], None, over!("budget", "thread = ?1", "?2")),
            false => Ok(()),
        }
    }
}

impl JournalReader {
    /// Reads the budgets that a condition selects.
    pub(super) fn budget_rows(
        &self,
        condition: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<BudgetRecord>, FileProblem> {
        self.rows(condition, params, |_, record, _, _| Ok(record))
    }
}
