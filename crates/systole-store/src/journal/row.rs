//! Rows of tables: columns from a record, and a record from columns.

use std::convert::Infallible;

use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, Statement};
use systole_core::vocab::{Name, Time};

use super::sum::Sums;
use super::weigh::ROW;
use crate::sqlite::FileProblem;

/// The most columns that a row has.
const MOST: usize = 20;

/// A record that is stored as one row.
pub(super) trait Record: Sized {
    /// The table.
    const TABLE: &'static str;
    /// Writes a new row: the columns of [`cells`](Self::cells), `sum`, `at`.
    const INSERT: &'static str;
    /// Writes a row, replacing one of the same key.
    const REPLACE: &'static str;
    /// Positions of the columns whose bytes count for the weight of a row (see `weigh`).
    const HEAVY: &'static [usize] = &[];
    /// The names of the columns of [`cells`](Self::cells), in order.
    const NAMES: &'static str;
    /// Number of those columns.
    const COLUMNS: usize;
    /// The column or expression that tells when a row ended.
    const ENDED: &'static str;
    /// Reads the columns, `sum`, `at` and when the row ended; a condition may follow.
    const SELECT: &'static str;
    /// Reads the sum of the row of a key, 0 if it has ended, and when it came.
    const REPLACED: &'static str;
    /// Reads the open row of a key as [`SELECT`](Self::SELECT) does.
    const OPEN: &'static str;
    /// Deletes the row of a key.
    const DELETE: &'static str;
    /// Writes a new row that may have ended: the columns of [`cells`](Self::cells), `sum`, `at`, `ended`; and `ending`,
    /// for messages.
    const FINAL: &'static str;

    /// Passes the columns on, in order.
    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()>;

    /// Parses the columns; `None` if they don't form a record.
    fn read(cells: &mut Cells<'_>) -> Option<Self>;
}

/// The statements of a [`Record`]: its table, the condition that finds a row by its key, the column that tells when it
/// ended, its columns and as many marks.
macro_rules! statements {
    ($table:literal, $key:literal, $ended:literal, $columns:literal, $marks:literal) => {
        statements!($table, $key, $ended, $columns, $marks, "ended", "?");
    };
    ($table:literal, $key:literal, $ended:literal, $columns:literal, $marks:literal, $end:literal, $mark:literal) => {
        const TABLE: &'static str = $table;
        const INSERT: &'static str = statements!("INSERT", $table, $columns, $marks);
        const REPLACE: &'static str = statements!("REPLACE", $table, $columns, $marks);
        const NAMES: &'static str = $columns;
        const COLUMNS: usize = $marks.len().div_ceil(3);
        const ENDED: &'static str = $ended;
        const SELECT: &'static str = concat!("SELECT ", $columns, ", sum, at, ", $ended, " FROM ", $table, " ");
        const REPLACED: &'static str =
            concat!("SELECT iif(", $ended, " IS NULL, sum, 0), at FROM ", $table, " WHERE ", $key);
        const OPEN: &'static str = concat!(
            "SELECT ",
            $columns,
            ", sum, at, ",
            $ended,
            " FROM ",
            $table,
            " WHERE ",
            $key,
            " AND ",
            $ended,
            " IS NULL"
        );
        const DELETE: &'static str = concat!("DELETE FROM ", $table, " WHERE ", $key);
        const FINAL: &'static str = concat!(
            "INSERT INTO ",
            $table,
            " (",
            $columns,
            ", sum, at, ",
            $end,
            ") VALUES (",
            $marks,
            ", ?, ?, ",
            $mark,
            ")"
        );
    };
    ($verb:literal, $table:literal, $columns:literal, $marks:literal) => {
        concat!($verb, " INTO ", $table, " (", $columns, ", sum, at) VALUES (", $marks, ", ?, ?)")
    };
}
pub(super) use statements;

/// Writes a row by [`Record::INSERT`] or [`Record::REPLACE`], and returns its sum.
pub(super) fn write<R: Record>(
    statement: &mut Statement<'_>,
    record: &R,
    at: i64,
    sums: &mut Sums,
) -> rusqlite::Result<i64> {
    let Bound { sum, .. } = bind(statement, record, (at, None), sums)?;
    statement.raw_execute()?;
    Ok(sum)
}

/// Writes a row by [`Record::FINAL`], and returns its sum and its weight.
pub(super) fn write_final<R: Record>(
    statement: &mut Statement<'_>,
    record: &R,
    times: (i64, Option<i64>),
    ending: Option<&str>,
    sums: &mut Sums,
) -> rusqlite::Result<(i64, i64)> {
    let Bound { sum, weight, column } = bind(statement, record, times, sums)?;
    statement.raw_bind_parameter(column + 1, times.1)?;
    if statement.parameter_count() > column + 1 {
        statement.raw_bind_parameter(column + 2, ending)?;
    }
    statement.raw_execute()?;
    Ok((sum, weight))
}

/// Parameters of a statement that a record was bound to.
struct Bound {
    sum: i64,
    weight: i64,
    /// The number of the last one.
    column: usize,
}

/// Binds the columns of a record, its sum and the time at which it came.
fn bind<R: Record>(
    statement: &mut Statement<'_>,
    record: &R,
    times: (i64, Option<i64>),
    sums: &mut Sums,
) -> rusqlite::Result<Bound> {
    let (mut column, mut weight) = (0, ROW);
    let sum = sums.sum::<R, _>(times, |columns| {
        record.cells(&mut |cell| {
            let value = match &cell {
                ToSqlOutput::Borrowed(value) => *value,
                ToSqlOutput::Owned(value) => value.into(),
                // The other kinds belong to features that are off.
                _ => ValueRef::Null,
            };
            columns.add(value);
            if R::HEAVY.contains(&column) {
                weight += bytes(value);
            }
            column += 1;
            statement.raw_bind_parameter(column, cell)
        })
    })?;
    statement.raw_bind_parameter(column + 1, sum)?;
    statement.raw_bind_parameter(column + 2, times.0)?;
    Ok(Bound { sum, weight, column: column + 2 })
}

fn bytes(value: ValueRef<'_>) -> i64 {
    value.as_bytes_or_null().ok().flatten().map_or(0, |bytes| bytes.len() as i64)
}

/// A row whose sum was checked.
pub(super) struct Loaded<R> {
    pub(super) record: R,
    pub(super) sum: i64,
    pub(super) at: i64,
    pub(super) ended: Option<i64>,
}

/// Reads a row of [`Record::SELECT`].
pub(super) fn load<R: Record>(row: &Row<'_>, sums: &mut Sums) -> Result<Loaded<R>, FileProblem> {
    const { assert!(R::COLUMNS + 3 <= MOST) };
    let damaged = || FileProblem::row::<R>(row);
    // SQLite is asked once for each value, which the sum and the record need.
    let mut values = [ValueRef::Null; MOST];
    for (column, value) in values[..R::COLUMNS + 3].iter_mut().enumerate() {
        *value = row.get_ref(column)?;
    }
    let (values, times) = values.split_at(R::COLUMNS);
    let number = |column: usize| times[column].as_i64_or_null();
    let (Ok(Some(sum)), Ok(Some(at)), Ok(ended)) = (number(0), number(1), number(2)) else {
        return Err(damaged());
    };
    let Ok(found) = sums.sum::<R, Infallible>((at, ended), |columns| {
        values.iter().for_each(|value| columns.add(*value));
        Ok(())
    });
    if found != sum {
        return Err(damaged());
    }
    let record = R::read(&mut Cells::new(values)).ok_or_else(damaged)?;
    Ok(Loaded { record, sum, at, ended })
}

/// The columns of a row, from left to right. A value of another type than the requested one is `None`.
pub(super) struct Cells<'a> {
    values: &'a [ValueRef<'a>],
    next: usize,
}

impl<'a> Cells<'a> {
    pub(super) fn new(values: &'a [ValueRef<'a>]) -> Self {
        Self { values, next: 0 }
    }

    pub(super) fn value(&mut self) -> Option<ValueRef<'a>> {
        self.next += 1;
        self.values.get(self.next - 1).copied()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(self.value()?.as_i64().ok()?.cast_unsigned())
    }

    pub(super) fn optional_number(&mut self) -> Option<Option<u64>> {
        Some(self.value()?.as_i64_or_null().ok()?.map(i64::cast_unsigned))
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        self.value()?.as_str().ok()
    }

    pub(super) fn optional_text(&mut self) -> Option<Option<&'a str>> {
        self.value()?.as_str_or_null().ok()
    }

    pub(super) fn bytes(&mut self) -> Option<Bytes> {
        self.value()?.as_bytes().ok().map(Bytes::copy_from_slice)
    }

    pub(super) fn blob<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.value()?.as_blob().ok()?.try_into().ok()
    }

    pub(super) fn optional_blob<const LEN: usize>(&mut self) -> Option<Option<[u8; LEN]>> {
        match self.value()?.as_blob_or_null().ok()? {
            Some(bytes) => bytes.try_into().ok().map(Some),
            None => Some(None),
        }
    }

    pub(super) fn optional_bytes(&mut self) -> Option<Option<Bytes>> {
        Some(self.value()?.as_blob_or_null().ok()?.map(Bytes::copy_from_slice))
    }

    pub(super) fn name(&mut self) -> Option<Name> {
        super::text::parse_name(self.text()?)
    }

    pub(super) fn optional_name(&mut self) -> Option<Option<Name>> {
        self.optional_text()?.map_or(Some(None), |text| super::text::parse_name(text).map(Some))
    }
}

/// Stores a number by its bits: those below 2^63 as they are, greater ones as negative numbers.
pub(super) fn number(number: u64) -> ToSqlOutput<'static> {
    number.cast_signed().into()
}

pub(super) fn optional_number(value: Option<u64>) -> ToSqlOutput<'static> {
    value.map_or(ToSqlOutput::Borrowed(ValueRef::Null), number)
}

pub(super) fn flag(flag: bool) -> ToSqlOutput<'static> {
    number(u64::from(flag))
}

/// Stores text without a check: canonical XML and the journal's own texts are UTF-8, as SQLite expects.
pub(super) fn text(text: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text))
}

pub(super) fn optional_text(value: Option<&str>) -> ToSqlOutput<'_> {
    value.map_or(ToSqlOutput::Borrowed(ValueRef::Null), |value| text(value.as_bytes()))
}

pub(super) fn owned_text(text: String) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(Value::Text(text))
}

pub(super) fn optional_owned_text(text: Option<String>) -> ToSqlOutput<'static> {
    text.map_or(ToSqlOutput::Borrowed(ValueRef::Null), owned_text)
}

/// Stores an id in 16 bytes instead of 36 as text: ids are in every row, some in two columns.
pub(super) fn blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Blob(bytes))
}

pub(super) fn optional_blob(bytes: Option<&[u8]>) -> ToSqlOutput<'_> {
    bytes.map_or(ToSqlOutput::Borrowed(ValueRef::Null), blob)
}

/// Stores a time; the end of time is `NULL`.
pub(super) fn time(time: Time) -> ToSqlOutput<'static> {
    optional_number((time != Time::MAX).then(|| time.as_nanos()))
}

pub(super) fn parse_time(nanos: Option<u64>) -> Time {
    nanos.map_or(Time::MAX, Time::from_nanos)
}
