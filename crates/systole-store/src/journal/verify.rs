//! Checks every row of a journal, including the ended ones.

use rusqlite::types::Value;
use rusqlite::{Params, Row, params_from_iter};
use systole_core::journal::{
    AddresseeRecord, AgentRecord, BudgetRecord, EgressRecord, LetterRecord, MailRecord, MessageRecord, NoteRecord,
    PausedRecord, RememberedRecord, StateRecord, SubmissionRecord, TaskRecord, ThreadRecord,
};

use super::batch::{BatchRow, Batches};
use super::error::StoreError;
use super::fan::{FanRow, SettledRow};
use super::mail::{Gone, StatusRow};
use super::open::meta;
use super::owner::JournalOwner;
use super::principal::PrincipalRow;
use super::reader::JournalReader;
use super::records::{ActRow, Redrive};
use super::retain::horizon;
use super::row::{Record, load};
use super::sum::Sums;
use crate::sqlite::{Cut, FileProblem, transaction};

/// The most faults of a report.
const MOST: usize = 100;

/// The most rows that are read in one transaction while an organism writes the journal.
const PIECE: usize = 4096;

/// Result of a complete check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Rows that were read.
    pub rows: u64,
    /// Damage that was found, at most 100 entries; empty if the journal is in order.
    pub faults: Vec<String>,
    /// The end of the log that was cut off when the journal was opened for this check: an unfinished transaction.
    pub cut: Option<Cut>,
    /// True if the pages and indexes were not checked to the end, because the log of the running organism grew too long
    /// meanwhile.
    pub unchecked: bool,
    /// The place of the damage, if there is some.
    pub verdict: Verdict,
}

/// Verdict on a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Verdict {
    /// All that was checked is in order.
    #[default]
    InOrder,
    /// Rows, pages or indexes are damaged.
    Damaged,
    /// The log is damaged: what is before that place can be kept.
    DamagedLog,
    /// The log lacks transactions: what is before that place can be kept.
    IncompleteLog,
}

impl VerifyReport {
    /// Makes the report of a journal that is too damaged to be read row by row.
    pub fn damaged(problem: &FileProblem) -> Self {
        let verdict = match problem {
            FileProblem::DamagedLog { .. } => Verdict::DamagedLog,
            FileProblem::UnsyncedLog { .. } => Verdict::IncompleteLog,
            _ => Verdict::Damaged,
        };
        Self { faults: vec![problem.advised()], verdict, ..Self::default() }
    }
}

impl VerifyReport {
    /// Returns the reason why the pages and indexes were not checked to the end.
    pub fn why_unchecked(&self) -> Option<String> {
        self.unchecked.then(|| FileProblem::Outgrown.to_string())
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
        let verdict = VerifyReport { cut: self.cut, ..VerifyReport::default() };
        let pass = Pass::Whole;
        let mut check = Check { reader: self, verdict, total: 0, sums: Sums::default(), pass };
        if self.db.file().writer()?.is_none() {
            transaction(&self.db, "BEGIN", || {
                check.pages()?;
                check.tables()?;
                check.totals()
            })?;
        } else {
            check.pass = Pass::Pieces;
            match check.pages() {
                Err(FileProblem::Outgrown) => check.verdict.unchecked = true,
                done => done?,
            }
            check.tables()?;
            (check.pass, check.total) = (Pass::Open, 0);
            transaction(&self.db, "BEGIN", || {
                check.tables()?;
                check.totals()
            })?;
        }
        check.verdict.faults.truncate(MOST);
        if !check.verdict.faults.is_empty() {
            check.verdict.verdict = Verdict::Damaged;
        }
        Ok(check.verdict)
    }
}

/// The rows that a pass over the tables reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// All rows, in one transaction.
    Whole,
    /// All rows, in pieces: the log of a running organism can't start over while a transaction is open.
    Pieces,
    /// The open rows alone, for their total.
    Open,
}

struct Check<'a> {
    reader: &'a JournalReader,
    verdict: VerifyReport,
    total: i64,
    sums: Sums,
    pass: Pass,
}

impl Check<'_> {
    /// Checks the rows of all tables.
    fn tables(&mut self) -> Result<(), FileProblem> {
        self.rows::<ThreadRecord>()?;
        self.rows::<MessageRecord>()?;
        self.endings()?;
        self.rows::<FanRow>()?;
        self.rows::<SettledRow>()?;
        self.rows::<NoteRecord>()?;
        self.rows::<RememberedRecord>()?;
        self.horizon()?;
        self.rows::<EgressRecord>()?;
        self.rows::<LetterRecord>()?;
        self.rows::<Redrive>()?;
        self.rows::<TaskRecord>()?;
        self.rows::<StateRecord>()?;
        self.rows::<PausedRecord>()?;
        self.rows::<ActRow>()?;
        self.rows::<MailRecord>()?;
        self.rows::<StatusRow>()?;
        self.rows::<Gone>()?;
        self.rows::<AgentRecord>()?;
        self.rows::<AddresseeRecord>()?;
        self.rows::<SubmissionRecord>()?;
        self.rows::<BudgetRecord>()?;
        self.rows::<BatchRow>()?;
        self.uncounted::<PrincipalRow>()?;
        self.uncounted::<JournalOwner>()
    }

    /// Checks that the steps of all batches can be applied after a crash, and that no row is missing.
    fn totals(&mut self) -> Result<(), FileProblem> {
        self.batches()?;
        let known = meta(&self.reader.db, &mut Sums::default())?.record.total;
        if self.verdict.faults.is_empty() && self.total != known {
            self.fault("rows are missing, or come from another time".to_owned());
        }
        Ok(())
    }

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
        let meta = meta(&self.reader.db, &mut Sums::default())?.record;
        match Batches::check(&self.reader.db, &meta) {
            Err(FileProblem::Damaged { what }) => self.fault(what),
            other => drop(other?),
        }
        Ok(())
    }

    fn horizon(&mut self) -> Result<(), FileProblem> {
        if self.pass == Pass::Open {
            return Ok(());
        }
        match horizon(&self.reader.db, &mut self.sums) {
            Err(FileProblem::Damaged { what }) => self.fault(what),
            other => drop(other?),
        }
        Ok(())
    }

    /// Checks the `ending` of messages, which no sum covers.
    fn endings(&mut self) -> Result<(), FileProblem> {
        if self.pass == Pass::Open {
            return Ok(());
        }
        let sql = "SELECT number FROM message WHERE (ended IS NULL) <> (ending IS NULL) \
                   OR ending NOT IN ('done', 'cancelled')";
        let mut statement = self.reader.db.prepare(sql)?;
        for number in statement.query_map([], |row| row.get::<_, i64>(0))? {
            self.verdict.faults.push(format!("message {}: how it ended is not as it was written", number?));
        }
        Ok(())
    }

    /// Checks the rows of a table that are in no total, as principals are: other processes write those.
    fn uncounted<R: Record>(&mut self) -> Result<(), FileProblem> {
        let total = self.total;
        self.rows::<R>()?;
        self.total = total;
        Ok(())
    }

    fn rows<R: Record>(&mut self) -> Result<(), FileProblem> {
        match self.pass {
            Pass::Whole => self.read::<R>(R::SELECT, []).map(drop),
            Pass::Open => self.read::<R>(&format!("{} WHERE {} IS NULL", R::SELECT, R::ENDED), []).map(drop),
            Pass::Pieces => self.pieces::<R>(),
        }
    }

    /// Reads a table in pieces, in the order of its key; a row that comes or goes meanwhile is read or not.
    fn pieces<R: Record>(&mut self) -> Result<(), FileProblem> {
        let select = R::SELECT;
        let sql = "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
        let mut names = self.reader.db.prepare(sql)?;
        let key = names.query_map([R::TABLE], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        if key.is_empty() {
            return self.read::<R>(select, []).map(drop);
        }
        let (columns, marks) = (key.join(", "), vec!["?"; key.len()].join(", "));
        let mut last = self.read_piece::<R>(&format!("{select} ORDER BY {columns} LIMIT {PIECE}"), Vec::new(), &key)?;
        let next = format!("{select} WHERE ({columns}) > ({marks}) ORDER BY {columns} LIMIT {PIECE}");
        while let Some(behind) = last {
            last = self.read_piece::<R>(&next, behind, &key)?;
        }
        Ok(())
    }

    /// Reads a piece of a table behind a key; returns the key of its last row, if more may follow.
    fn read_piece<R: Record>(
        &mut self,
        sql: &str,
        behind: Vec<Value>,
        key: &[String],
    ) -> Result<Option<Vec<Value>>, FileProblem> {
        let mut last = None;
        let read = self.read_each::<R>(sql, params_from_iter(behind), |row| {
            last = Some(key.iter().map(|name| row.get(name.as_str())).collect::<rusqlite::Result<Vec<Value>>>()?);
            Ok(())
        })?;
        Ok(last.filter(|_| read == PIECE))
    }

    fn read<R: Record>(&mut self, sql: &str, params: impl Params) -> Result<usize, FileProblem> {
        self.read_each::<R>(sql, params, |_| Ok(()))
    }

    fn read_each<R: Record>(
        &mut self,
        sql: &str,
        params: impl Params,
        mut look: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<usize, FileProblem> {
        let mut statement = self.reader.db.prepare(sql)?;
        let (mut rows, mut read) = (statement.query(params)?, 0);
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(read),
                Err(error) => match FileProblem::from(error) {
                    problem @ FileProblem::Outgrown => return Err(problem),
                    problem => {
                        self.verdict.faults.push(format!("{}: {problem}", R::TABLE));
                        return Ok(0);
                    }
                },
            };
            read += 1;
            look(row)?;
            let loaded = load::<R>(row, &mut self.sums);
            if self.pass == Pass::Open {
                // The pass before has reported damage.
                self.total = self.total.wrapping_add(loaded.map_or(0, |loaded| loaded.sum));
                continue;
            }
            self.verdict.rows += 1;
            match loaded {
                Ok(loaded) if loaded.ended.is_none() => self.total = self.total.wrapping_add(loaded.sum),
                Ok(_) => {}
                Err(FileProblem::Damaged { what }) => self.verdict.faults.push(what),
                Err(other) => return Err(other),
            }
        }
    }
}
