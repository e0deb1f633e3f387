//! Reads the open rows of some partitions, from the roots of their conversations down.
//!
//! No row but a dead letter names its partition (`partition.sql`), and no index leads to it: an index of the open threads
//! names the roots, and then each row is found by a key that an index has anyway. So what is read are the rows of those
//! partitions, and the ids of the other open roots.

use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use systole_core::journal::{BudgetRecord, Number, Recovered, ThreadRecord};
use systole_core::vocab::{Partition, Partitions, ThreadId};
use uuid::Uuid;

use super::fan::FanRow;
use super::records::Redrive;
use super::recover::{Open, fan_outs, in_order, mailboxes, ordinals};
use crate::sqlite::FileProblem;

/// The condition that a column is one of the numbers in a parameter, for open rows.
macro_rules! among {
    ($column:literal, $order:literal) => {
        concat!("WHERE ended IS NULL AND ", $column, " IN (SELECT value FROM json_each(?1)) ORDER BY ", $order)
    };
}

/// Reads what belongs to conversations of partitions; the other fields stay empty.
pub(super) fn read(db: &Connection, partitions: &Partitions) -> Result<Recovered, FileProblem> {
    let mut open = Open::new(db);
    let roots = list(roots(db, partitions)?);
    let threads: Vec<ThreadRecord> = open.select(among!("root", "number"), [roots], |thread| thread)?;
    let of_threads = list(threads.iter().map(|thread| thread.number));
    let of_threads = [of_threads.as_str()];
    let budgets: Vec<BudgetRecord> = open.select(among!("thread", "thread"), of_threads, |budget| budget)?;
    let messages = in_order(open.select(among!("thread", "number"), of_threads, |message| message)?);
    let fans: Vec<FanRow> = open.select(among!("thread", "message, call"), of_threads, |fan| fan)?;
    let of_fans = list(fans.iter().map(|fan| fan.id.message));
    let answers = open.select(among!("message", "message, call, place"), [of_fans], |answer| answer)?;
    let of_messages = list(messages.iter().map(|message| message.number));
    // All that wait in mailboxes are few beside the rows of conversations, and no column leads from them to partitions.
    let of_partitions: HashSet<_> = messages.iter().map(|message| message.id).collect();
    let (mut mail, _) = mailboxes(&mut open)?;
    mail.retain(|mail| of_partitions.contains(&mail.id));
    let parts = list(partitions.iter().map(|partition| partition.0.into()));
    let parts = [parts.as_str()];
    let marked = "WHERE letter IN (SELECT number FROM letter WHERE part IN (SELECT value FROM json_each(?1))) \
                  ORDER BY letter";
    let ends: Vec<_> = partitions.iter().map(|partition| format!("\"{:02X}\"", partition.0)).collect();
    let ends = format!("[{}]", ends.join(","));
    Ok(Recovered {
        budgets,
        fans: fan_outs(fans, answers)?,
        messages,
        notes: open.select(among!("message", "message, place"), [of_messages], |note| note)?,
        remembered: open.select(among!("thread", "number"), of_threads, |entry| entry)?,
        egress: open.select(among!("hex(substr(root, 16))", "number"), [ends], |egress| egress)?,
        letters: open
            .select("WHERE part IN (SELECT value FROM json_each(?1)) ORDER BY number", parts, |letter| letter)?,
        redrive: open.select(marked, parts, |Redrive(letter)| letter)?,
        ordinals: ordinals(db, &threads)?,
        mail,
        threads,
        ..Recovered::default()
    })
}

/// Reads the numbers of the open roots of partitions.
fn roots(db: &Connection, partitions: &Partitions) -> Result<Vec<Number>, FileProblem> {
    let sql = "SELECT number, id, client = 'root' FROM thread WHERE ended IS NULL AND root = number ORDER BY number";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut roots = Vec::new();
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.cast_unsigned();
        let partition = match (row.get_ref(1)?, row.get_ref(2)?) {
            (_, ValueRef::Integer(1)) => Partition::BOOT,
            (ValueRef::Blob(id), _) => {
                let id = id.try_into().map_err(|_| FileProblem::damaged(format!("thread {number} has no id")))?;
                Partition::of(ThreadId::from_uuid(Uuid::from_bytes(id)))
            }
            _ => return Err(FileProblem::damaged(format!("thread {number} has no id"))),
        };
        if partitions.contains(partition) {
            roots.push(number);
        }
    }
    Ok(roots)
}

/// Writes numbers as a parameter for `json_each`.
fn list(numbers: impl IntoIterator<Item = Number>) -> String {
    let numbers: Vec<_> = numbers.into_iter().map(|number| number.cast_signed().to_string()).collect();
    format!("[{}]", numbers.join(","))
}
