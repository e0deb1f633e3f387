//! Checks every row of a journal, including the ended ones.

use systole_core::journal::{
    AddresseeRecord, AgentRecord, BudgetRecord, EgressRecord, LetterRecord, MailRecord, MessageRecord, NoteRecord,
    RememberedRecord, StateRecord, SubmissionRecord, TaskRecord, ThreadRecord,
};

use super::batch::{BatchRow, Batches};
use super::error::StoreError;
use super::fan::{FanRow, SettledRow};
use super::mail::{Gone, StatusRow, TakenOver};
use super::meta::Horizon;
use super::open::meta;
use super::owner::JournalOwner;
use super::principal::PrincipalRow;
use super::reader::JournalReader;
use super::records::Redrive;
use super::retain::horizon;
use super::row::{Record, load};
use super::sum::Sums;
use crate::runtime::sqlite::FileProblem;

/// The most faults of a report.
const MOST: usize = 100;

/// Result of a complete check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Rows that were read.
    pub rows: u64,
    /// Damage that was found, at most 100 entries; empty if the journal is in order.
    pub faults: Vec<String>,
}

impl VerifyReport {
    /// Makes the report of a journal that is too damaged to be read row by row.
    pub fn damaged(problem: &FileProblem) -> Self {
        Self { faults: vec![problem.advised()], ..Self::default() }
    }
}

impl JournalReader {
    /// Checks the log, every page, every index and every row.
    ///
    /// # Errors
    /// [`StoreError`] if the journal can't be read at all.
    pub fn verify(&self) -> Result<VerifyReport, StoreError> {
        self.told(self.try_verify())
    }

    fn try_verify(&self) -> Result<VerifyReport, FileProblem> {
        let mut check = Check { reader: self, verdict: VerifyReport::default(), total: 0, sums: self.sums() };
        check.pages()?;
        check.rows::<ThreadRecord>()?;
        check.rows::<MessageRecord>()?;
        check.endings()?;
        check.rows::<FanRow>()?;
        check.rows::<SettledRow>()?;
        check.rows::<NoteRecord>()?;
        if self.has::<Horizon>()? {
            check.rows::<RememberedRecord>()?;
            check.horizon()?;
        } else {
            // Ended ones were not kept in that version.
            check.rows_by::<RememberedRecord>(&RememberedRecord::SELECT.replace(", ended FROM", ", NULL FROM"))?;
        }
        check.rows::<EgressRecord>()?;
        check.rows::<LetterRecord>()?;
        if self.has::<Redrive>()? {
            check.rows::<Redrive>()?;
        }
        if self.has::<TaskRecord>()? {
            check.rows::<TaskRecord>()?;
            check.rows::<StateRecord>()?;
        }
        if self.has::<MailRecord>()? {
            check.rows::<MailRecord>()?;
            check.rows::<StatusRow>()?;
            check.rows::<Gone>()?;
            check.rows::<AgentRecord>()?;
            check.rows::<SubmissionRecord>()?;
            check.rows::<TakenOver>()?;
            check.uncounted::<PrincipalRow>()?;
        }
        if self.has::<AddresseeRecord>()? {
            check.rows::<AddresseeRecord>()?;
        }
        if self.has::<JournalOwner>()? {
            check.uncounted::<JournalOwner>()?;
        }
        if self.has::<BudgetRecord>()? {
            check.rows::<BudgetRecord>()?;
        }
        if self.has::<BatchRow>()? {
            check.rows::<BatchRow>()?;
            check.batches()?;
        }
        let known = meta(&self.db, &mut self.sums())?.record.total;
        if check.verdict.faults.is_empty() && check.total != known {
            check.fault("rows are missing, or come from another time".to_owned());
        }
        check.verdict.faults.truncate(MOST);
        Ok(check.verdict)
    }
}

struct Check<'a> {
    reader: &'a JournalReader,
    verdict: VerifyReport,
    total: i64,
    sums: Sums,
}

impl Check<'_> {
    fn fault(&mut self, fault: String) {
        self.verdict.faults.push(fault);
    }

    fn pages(&mut self) -> Result<(), FileProblem> {
        let mut statement = self.reader.db.prepare("PRAGMA integrity_check")?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?;
        for found in found {
            let found = found?;
            if found != "ok" {
                self.verdict.faults.push(found.replace('\n', " "));
            }
        }
        Ok(())
    }

    /// Checks that the steps of all batches can be applied after a crash.
    fn batches(&mut self) -> Result<(), FileProblem> {
        let meta = meta(&self.reader.db, &mut self.reader.sums())?.record;
        match Batches::check(&self.reader.db, &meta, self.reader.version) {
            Err(FileProblem::Damaged { what }) => self.fault(what),
            other => drop(other?),
        }
        Ok(())
    }

    fn horizon(&mut self) -> Result<(), FileProblem> {
        match horizon(&self.reader.db, &mut self.sums) {
            Err(FileProblem::Damaged { what }) => self.fault(what),
            other => drop(other?),
        }
        Ok(())
    }

    /// Checks the `ending` of messages, which no sum covers.
    fn endings(&mut self) -> Result<(), FileProblem> {
        let sql = "SELECT number FROM message WHERE (ended IS NULL) <> (ending IS NULL) \
                   OR ending NOT IN ('done', 'cancelled')";
        let mut statement = self.reader.db.prepare(sql)?;
        for number in statement.query_map([], |row| row.get::<_, i64>(0))? {
            self.verdict.faults.push(format!("message {}: how it ended is not as it was written", number?));
        }
        Ok(())
    }

    /// Checks principals: other processes write them, so they are in no total.
    /// Checks the rows of a table that are in no total.
    fn uncounted<R: Record>(&mut self) -> Result<(), FileProblem> {
        let total = self.total;
        self.rows::<R>()?;
        self.total = total;
        Ok(())
    }

    fn rows<R: Record>(&mut self) -> Result<(), FileProblem> {
        let select = self.reader.select::<R>();
        self.rows_by::<R>(&select)
    }

    fn rows_by<R: Record>(&mut self, select: &str) -> Result<(), FileProblem> {
        let mut statement = self.reader.db.prepare(select)?;
        let mut rows = statement.query([])?;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.verdict.faults.push(format!("{}: {error}", R::TABLE));
                    return Ok(());
                }
            };
            self.verdict.rows += 1;
            match load::<R>(row, &mut self.sums) {
                Ok(loaded) if loaded.ended.is_none() => self.total = self.total.wrapping_add(loaded.sum),
                Ok(_) => {}
                Err(FileProblem::Damaged { what }) => self.verdict.faults.push(what),
                Err(other) => return Err(other),
            }
        }
    }
}
