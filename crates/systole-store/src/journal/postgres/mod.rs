//! The store in a PostgreSQL database: a log that is the truth, tables that follow it, and an image for this process.
//!
//! - An append is one entry of the log, in one statement that requires the entry before it (`log`). It is durable when
//!   the server has answered, or when rereading the log shows that it is there.
//! - The organism works on an image (`image`): an SQLite file that is loaded from the tables and the log at the start,
//!   and deleted at the end. It has the same tables, and the same code applies steps to it and answers queries from it.
//! - Rows that have changed in the image are fed to the tables behind the log (`table`), in one statement that moves the
//!   place up to which they have it.
//! - Principals alone are read and written in the database, since other processes admit and dismiss them.
//!
//! Always: whoever opens the journal for writing takes the log over by an entry of a new epoch, before it reads anything;
//! appends and feeds of earlier epochs are refused from then on. `docs/postgres.md` has the promises and the limits.

mod address;
mod entry;
mod image;
mod layout;
mod lease;
mod load;
mod log;
mod principals;
mod problem;
mod reader;
mod server;
mod table;
mod tls;
mod writer;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use systole_core::journal::JournalError;
use systole_core::vocab::Time;
use tokio_postgres::types::Type;

pub use address::AddressError;

use super::edit::Compacted;
use super::lease::{ClusterState, LeaseStore, NodeCard};
use super::query::JournalQuery;
use super::reader::JournalReader;
use super::store::{Claim, Editor, OpenStore, PrincipalStore, Query, Reader, Store};
use super::verify::{Verdict, VerifyReport};
use super::writer::JournalFeeder;
use super::{JournalOptions, Journaled, SqliteJournal, StoreError};
use crate::entropy::Entropy;
use crate::sqlite::{FileProblem, Retention, beside};
use crate::tenure::Tenure;
use address::Address;
use entry::Kind;
use image::Image;
use lease::{Guard, Leases};
use load::{LoadedImage, load_image};
use principals::{PostgresBearers, PostgresPrincipals};
use problem::Problem;
use reader::ImageReader;
use server::{Link, Server};
use writer::{PostgresEditor, PostgresJournal};

/// The journal of an organism in a PostgreSQL database: the [`Store`] behind `journal: postgres://…`.
///
/// Clones name the same store: queries of one are answered from what another has open.
#[derive(Debug, Clone)]
pub struct Postgres {
    address: Arc<Address>,
    retention: Retention,
    /// The image of the organism that this process runs.
    running: Arc<Mutex<Weak<Image>>>,
    /// The lease of this node, where several may run the organism.
    tenure: Option<Tenure>,
}

impl PartialEq for Postgres {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address && self.retention == other.retention
    }
}

impl Eq for Postgres {}

impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Postgres {
    /// A journal in the database of a URL, `postgres://USER@HOST/DATABASE`, with the default retention. Parameters are
    /// those of libpq that tokio-postgres knows, and `sslrootcert`. `password` is used where the URL has none.
    ///
    /// # Errors
    /// [`AddressError`] if the URL names no database, or can't be used safely.
    pub fn new(url: &str, password: Option<String>) -> Result<Self, AddressError> {
        let address = Arc::new(Address::parse(url, password)?);
        Ok(Self { address, retention: Retention::default(), running: Arc::default(), tenure: None })
    }

    /// Sets time and size for which ended rows are kept.
    #[must_use]
    pub fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Lets the organism run for as long as this node has that lease.
    #[must_use]
    pub fn within(self, tenure: Tenure) -> Self {
        Self { tenure: Some(tenure), ..self }
    }

    /// Brings the database to the layout of this program, and returns the lease in it for a node.
    ///
    /// # Errors
    /// [`JournalError`] if the database can't be reached or changed, or its journal belongs to another organism.
    pub fn leases(&self, organism: &str, card: NodeCard) -> Result<Box<dyn LeaseStore>, JournalError> {
        let server = self.connect()?;
        self.migrate(&server)?;
        self.check_owner(&server, organism)?;
        Ok(Box::new(Leases::new(self.address.clone(), card)))
    }

    /// Reads the nodes of the organism, and the lease.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal, or it can't be read.
    pub fn cluster(&self) -> Result<ClusterState, JournalError> {
        let server = self.connect()?;
        let link = Link::new(&self.address);
        server.wait(move || async move {
            link.briefly(async |client, _| {
                layout::check(client).await?;
                lease::state(client).await
            })
            .await
        })
    }

    /// Copies a journal in a file to this database, which has none yet. The file stays as it is.
    ///
    /// # Errors
    /// [`JournalError`] if the file is missing, in use or damaged, or the database has a journal or can't be written.
    pub fn import(&self, file: &Journaled) -> Result<(), JournalError> {
        let damaged = file.verify()?.faults.into_iter().next();
        if let Some(fault) = damaged {
            return Err(FileProblem::damaged(fault).of(&file.file).into());
        }
        let journal = SqliteJournal::open_existing(&file.file, &JournalOptions::new([0; 32]))?;
        let server = self.connect()?;
        self.migrate(&server)?;
        if !self.create(&server, &journal)? {
            return Err(Problem::Exists.of(&self.address));
        }
        Ok(())
    }

    /// Copies this journal to a new file.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal or its organism runs, or if the file exists or can't be written.
    pub fn export(&self, file: &Path) -> Result<(), JournalError> {
        let io = |error: std::io::Error| JournalError::from(FileProblem::from(error).of(file));
        let server = self.connect()?;
        self.check_stopped(&server)?;
        let (image, loaded) = load_image(&server, self.retention, None, false)?;
        if let Some(damage) = loaded.damage {
            return Err(damage.of(&self.address));
        }
        let told = |error: rusqlite::Error| JournalError::from(FileProblem::from(error).of(file));
        // Readable by its owner alone, as any journal.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(io)?;
        // A copy that is whole, whatever the image has beside it, and on the disk.
        let path = file.to_str().ok_or_else(|| FileProblem::damaged("its path is no UTF-8").of(file))?;
        loaded.journal.db.execute("VACUUM INTO ?1", [path]).map_err(told)?;
        drop((loaded.journal, image));
        let copy = rusqlite::Connection::open(file).map_err(told)?;
        copy.pragma_update(None, "journal_mode", "WAL").map_err(told)?;
        copy.close().map_err(|(_, error)| told(error))?;
        File::open(file).and_then(|file| file.sync_all()).map_err(io)
    }

    fn connect(&self) -> Result<Server, JournalError> {
        Server::start(&self.address)
    }

    /// Brings the database to the layout of this program.
    fn migrate(&self, server: &Server) -> Result<(), JournalError> {
        let link = Link::new(&self.address);
        server.wait(move || async move { link.briefly(async |client, _| layout::migrate(client).await).await })
    }

    /// Makes a journal with the rows of a file; returns `false` if there is one.
    fn create(&self, server: &Server, journal: &SqliteJournal) -> Result<bool, JournalError> {
        let told = |error: rusqlite::Error| JournalError::from(FileProblem::from(error).of(&journal.file));
        let tables = table::tables(&journal.db).map_err(told)?;
        let changes = image::all(&journal.db, &tables).map_err(told)?;
        let (link, epoch, id) = (Link::new(&self.address), i64::from(journal.meta.epoch), Entropy::Real.random());
        server.wait(move || async move { log::create(&link, epoch, id, changes).await })
    }

    /// Makes a journal with that secret where there is none.
    fn ensure(&self, server: &Server, secret: [u8; 32]) -> Result<(), JournalError> {
        self.migrate(server)?;
        let link = Link::new(&self.address);
        let head = server.wait(move || async move { link.briefly(async |client, _| log::head(client).await).await })?;
        if head.is_none() {
            let image = Image::make().map_err(|problem| problem.of(&self.address))?;
            let journal = image::open(&image.file, self.retention, secret)?;
            // Another process may make it at the same time: then that one's secret counts.
            self.create(server, &journal)?;
        }
        Ok(())
    }

    /// Checks that there is a journal, and that no organism runs on it.
    fn check_stopped(&self, server: &Server) -> Result<(), JournalError> {
        let link = Link::new(&self.address);
        server.wait(move || async move {
            link.briefly(async |client, _| {
                layout::check(client).await?;
                if log::head(client).await?.is_none() {
                    return Err(Problem::Missing.into());
                }
                // A lease is there, too, before its node has started the organism.
                Guard::of(None).check(client).await?;
                server::owner(client).await?.map_or(Ok(()), |backend| Err(Problem::InUse { backend }.into()))
            })
            .await
        })
    }

    /// Opens an existing journal whose organism doesn't run.
    fn take(&self, retention: Retention) -> Result<PostgresJournal, JournalError> {
        let server = self.connect()?;
        self.check_stopped(&server)?;
        self.migrate(&server)?;
        PostgresJournal::open(Arc::new(server), retention, Kind::Epoch, None)
    }

    /// Loads an existing journal for reading.
    fn look(&self) -> Result<(Image, LoadedImage), JournalError> {
        load_image(&self.connect()?, self.retention, None, false)
    }

    fn running(&self) -> Option<Arc<Image>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// The bytes of the tables, and of the log.
    fn sizes(&self, server: &Server) -> Result<(u64, u64), JournalError> {
        let link = Link::new(&self.address);
        server.wait(move || async move {
            link.briefly(async |client, _| {
                let sizes = "SELECT COALESCE(sum(pg_total_relation_size(oid)) FILTER (WHERE relname <> 'log'), 0)::bigint, \
                             COALESCE(sum(pg_total_relation_size(oid)) FILTER (WHERE relname = 'log'), 0)::bigint \
                             FROM pg_class WHERE relnamespace = to_regnamespace('systole') AND relkind = 'r'";
                let rows = client.query_typed(sizes, &[]).await?;
                let size = |at| rows.first().map_or(0, |row| row.get::<_, i64>(at).cast_unsigned());
                Ok((size(0), size(1)))
            })
            .await
        })
    }
}

impl Store for Postgres {
    fn check(&self) -> Result<(), JournalError> {
        let server = self.connect()?;
        let link = Link::new(&self.address);
        server.wait(move || async move {
            link.briefly(async |client, _| {
                let may = "SELECT pg_is_in_recovery(), to_regnamespace('systole') IS NOT NULL \
                           OR has_database_privilege(current_database(), 'CREATE'), current_user::text";
                let rows = client.query_typed(may, &[]).await?;
                match rows.first().map(|row| (row.get(0), row.get(1), row.get::<_, String>(2))) {
                    Some((true, ..)) => Err(Problem::Standby.into()),
                    Some((_, false, user)) => Err(Problem::MayNotCreate { user }.into()),
                    Some(_) | None => Ok(()),
                }
            })
            .await
        })
    }

    fn open(&self, secret: [u8; 32], claim: Option<Claim<'_>>) -> Result<OpenStore, JournalError> {
        let server = self.connect()?;
        self.ensure(&server, secret)?;
        if let Some(Claim { organism, .. }) = claim {
            // Another organism must not take it over first, and then find that it is not its own.
            self.check_owner(&server, organism)?;
        }
        let mut journal = PostgresJournal::open(Arc::new(server), self.retention, Kind::Start, self.tenure.clone())?;
        if let Some(Claim { organism, id }) = claim {
            journal.claim(organism, id)?;
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(journal.folder());
        let image = journal.image();
        Ok(OpenStore { room: image.room(), full: image.log_full(), journal: Box::new(journal) })
    }

    fn read(&self) -> Result<Box<dyn Reader>, JournalError> {
        let server = self.connect()?;
        let sizes = self.sizes(&server)?;
        Ok(Box::new(ImageReader::open(self.look()?, sizes, &self.address)?))
    }

    fn ask(&self, feeder: Option<JournalFeeder>, here: bool) -> Result<Arc<dyn Query>, JournalError> {
        let bearers = Arc::new(PostgresBearers::new(Arc::new(self.connect()?), here));
        if let Some(image) = self.running() {
            let query = if here { JournalQuery::here(&image.file)? } else { JournalQuery::open(&image.file, feeder)? };
            return Ok(Arc::new(query.of_image(image, bearers)));
        }
        let (image, loaded) = self.look()?;
        if let Some(damage) = loaded.damage {
            return Err(damage.of(&self.address));
        }
        let query = JournalQuery::here(&image.file)?;
        Ok(Arc::new(query.of_image(Arc::new(image), bearers)))
    }

    fn past(&self) -> Result<Arc<dyn Query>, JournalError> {
        self.ask(None, true)
    }

    fn admit(&self, secret: [u8; 32]) -> Result<Box<dyn PrincipalStore>, JournalError> {
        let server = self.connect()?;
        self.ensure(&server, secret)?;
        Ok(Box::new(PostgresPrincipals::open(server)?))
    }

    fn edit(&self) -> Result<Box<dyn Editor>, JournalError> {
        Ok(Box::new(PostgresEditor(self.take(self.retention)?)))
    }

    fn verify(&self) -> Result<VerifyReport, JournalError> {
        let (image, LoadedImage { journal, damage, .. }) = self.look()?;
        drop(journal);
        let mut report = JournalReader::open(&image.file).and_then(|reader| reader.verify()).or_else(damaged)?;
        if let Some(damage) = damage {
            report.faults.push(damage.to_string());
            report.verdict = Verdict::DamagedLog;
        }
        Ok(report)
    }

    fn bytes(&self) -> (u64, u64) {
        // Metrics ask for it at each scrape: they don't wait for a server.
        if let Some(image) = self.running() {
            let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |found| found.len());
            return (bytes(&image.file), bytes(&beside(&image.file, "-wal")));
        }
        self.connect().and_then(|server| self.sizes(&server)).unwrap_or_default()
    }

    fn compact(&self, retention: Retention, _: bool, now: Time) -> Result<Compacted, JournalError> {
        let server = self.connect()?;
        let whole = |(tables, log): (u64, u64)| tables + log;
        let before = self.sizes(&server).map(whole)?;
        let rows = self.take(retention)?.compact(now)?;
        let link = Link::new(&self.address);
        server.wait(move || async move {
            link.persist(async |client, _| {
                let names = "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace('systole') \
                             AND relkind = 'r'";
                for row in client.query_typed(names, &[]).await? {
                    client.batch_execute(&format!("VACUUM systole.{}", row.get::<_, &str>(0))).await?;
                }
                Ok(())
            })
            .await
        })?;
        Ok(Compacted { rows, before, after: self.sizes(&server).map(whole)? })
    }
}

/// The report of an image that can't even be opened.
fn damaged(error: StoreError) -> Result<VerifyReport, JournalError> {
    match error.problem {
        problem @ FileProblem::Damaged { .. } => Ok(VerifyReport::damaged(&problem)),
        _ => Err(error.into()),
    }
}

impl Postgres {
    /// Checks that a journal belongs to this organism, or to none.
    fn check_owner(&self, server: &Server, organism: &str) -> Result<(), JournalError> {
        let link = Link::new(&self.address);
        let owner: Option<String> = server.wait(move || async move {
            link.briefly(async |client, _| {
                let rows = client.query_typed(
                    "SELECT name FROM systole.organism WHERE log = 0 AND id = $1",
                    &[(&1_i64, Type::INT8)],
                );
                Ok(rows.await?.first().map(|row| row.get(0)))
            })
            .await
        })?;
        match owner {
            Some(owner) if owner != organism => {
                Err(Problem::NotOwned { owner, organism: organism.to_owned() }.of(&self.address))
            }
            Some(_) | None => Ok(()),
        }
    }
}
