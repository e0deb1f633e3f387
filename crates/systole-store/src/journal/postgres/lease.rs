//! The lease in the database. All times are those of the server's clock.

use std::sync::Arc;
use std::time::Duration;

use systole_core::journal::JournalError;
use systole_core::lease::{Answer, Ask, Holder};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::super::lease::{Asking, ClusterState, LeaseState, LeaseStore, NodeCard, SeenNode};
use super::address::Address;
use super::problem::{Problem, Trouble};
use super::server::connect;
use crate::tenure::Tenure;

/// The number of the log that the lease is about: the only one.
const PART: i16 = 0;

/// The time after which a node that asks no more is forgotten.
const FORGOTTEN: &str = "interval '1 day'";

/// A node that asks is noted, with its time.
const NOTE: &str = "noted AS (INSERT INTO systole.node AS known (name, url, process, seen) \
                    VALUES ($1, $2, $3, clock_timestamp()) ON CONFLICT (name) DO UPDATE \
                    SET url = excluded.url, process = excluded.process, seen = excluded.seen)";

/// The lease as it was before the statement.
const HOLDER: &str = "lease.node, lease.url, lease.process, lease.term, \
                      greatest(0, extract(epoch FROM lease.until - clock_timestamp()) * 1000)::bigint, lease.handed_over";

/// The lease in a database, for one node.
#[derive(Debug)]
pub(super) struct Leases {
    address: Arc<Address>,
    card: NodeCard,
    /// The connection, while no question is under way: one whose question is given up is closed.
    client: Option<Client>,
}

impl Leases {
    pub(super) fn new(address: Arc<Address>, card: NodeCard) -> Self {
        Self { address, card, client: None }
    }

    /// Runs statements on the connection, which is kept if they succeed.
    async fn once<T>(
        &mut self,
        work: impl AsyncFn(&Client, &NodeCard) -> Result<T, Trouble>,
    ) -> Result<T, JournalError> {
        let tried = async {
            let client = match self.client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => connect(&self.address).await?,
            };
            let done = work(&client, &self.card).await?;
            self.client = Some(client);
            Ok(done)
        };
        tried.await.map_err(|trouble| match trouble {
            Trouble::Lasting(problem) => problem.of(&self.address),
            Trouble::Passing(cause) => Problem::Unanswered { cause }.of(&self.address),
        })
    }
}

impl LeaseStore for Leases {
    fn ask(&mut self, ask: Ask) -> Asking<'_, Answer> {
        Box::pin(self.once(async move |client, card| answer(client, card, ask).await))
    }

    fn nodes(&mut self) -> Asking<'_, Vec<SeenNode>> {
        Box::pin(self.once(async |client, card| {
            let within = 3 * millis(card.lease);
            let sql = format!("{SEEN} WHERE seen > clock_timestamp() - $1 * interval '1 millisecond' ORDER BY name");
            let rows = client.query_typed(&sql, &[(&within, Type::INT8)]).await?;
            Ok(rows.iter().map(seen_node).collect())
        }))
    }
}

/// The nodes that are known.
const SEEN: &str = "SELECT name, url, process, \
                    greatest(0, extract(epoch FROM clock_timestamp() - seen) * 1000)::bigint FROM systole.node";

fn seen_node(row: &Row) -> SeenNode {
    let text = |at| row.get::<_, String>(at).into();
    SeenNode { name: text(0), url: text(1), process: row.get(2), ago: duration(row.get(3)) }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(millis.try_into().unwrap_or(0))
}

/// The lease in a row that begins with the columns [`HOLDER`] at that place; none if there is none.
fn holder(row: &Row, at: usize) -> Option<Holder> {
    Some(Holder {
        node: row.get::<_, Option<String>>(at)?.into(),
        url: row.get::<_, String>(at + 1).into(),
        process: row.get::<_, Uuid>(at + 2).as_u128(),
        term: row.get(at + 3),
        left: duration(row.get(at + 4)),
        handed_over: row.get(at + 5),
    })
}

async fn answer(client: &Client, card: &NodeCard, ask: Ask) -> Result<Answer, Trouble> {
    let (name, url, length) = (&*card.name, &*card.url, millis(card.lease));
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> =
        vec![(&name, Type::TEXT), (&url, Type::TEXT), (&card.process, Type::UUID)];
    // Each changes the lease by one statement, whose condition is checked again behind a change of another node.
    let change = match &ask {
        Ask::Look => "SELECT NULL::bigint AS term WHERE false".to_owned(),
        Ask::Take => {
            parameters.push((&length, Type::INT8));
            parameters.push((&PART, Type::INT2));
            format!(
                "INSERT INTO systole.lease AS lease (part, node, url, process, term, since, until, handed_over) \
                 SELECT $5, $1, $2, $3, 1, clock_timestamp(), clock_timestamp() + {LENGTH}, false \
                 WHERE NOT EXISTS (SELECT FROM systole.lease WHERE part = $5 \
                 AND until > clock_timestamp() AND process <> $3) \
                 ON CONFLICT (part) DO UPDATE SET node = excluded.node, url = excluded.url, process = excluded.process, \
                 term = lease.term + 1, since = excluded.since, until = excluded.until, handed_over = false \
                 WHERE lease.until <= clock_timestamp() OR lease.process = excluded.process RETURNING lease.term"
            )
        }
        Ask::Renew { term } => {
            parameters.extend::<[(&(dyn ToSql + Sync), Type); 2]>([(&length, Type::INT8), (term, Type::INT8)]);
            format!(
                "UPDATE systole.lease SET url = $2, until = clock_timestamp() + {LENGTH} \
                 WHERE part = 0 AND process = $3 AND term = $5 AND until > clock_timestamp() RETURNING term"
            )
        }
        Ask::Release { term } => {
            parameters.push((term, Type::INT8));
            "UPDATE systole.lease SET until = clock_timestamp(), handed_over = true \
             WHERE part = 0 AND process = $3 AND term = $4 AND until > clock_timestamp() RETURNING term"
                .to_owned()
        }
    };
    let sql = format!(
        "WITH {NOTE}, changed AS ({change}) SELECT (SELECT term FROM changed), {HOLDER} \
         FROM (SELECT) AS one LEFT JOIN systole.lease ON lease.part = 0"
    );
    let rows = client.query_typed(&sql, &parameters).await?;
    let changed: Option<i64> = rows.first().and_then(|row| row.get(0));
    let found = rows.first().and_then(|row| holder(row, 1));
    Ok(match (ask, changed) {
        (Ask::Take, Some(term)) => {
            let forget = format!("DELETE FROM systole.node WHERE seen < clock_timestamp() - {FORGOTTEN}");
            client.query_typed(&forget, &[]).await?;
            Answer::Taken { term, before: found }
        }
        (Ask::Renew { .. }, Some(_)) => Answer::Renewed,
        (Ask::Release { .. }, _) => Answer::Released,
        (Ask::Look | Ask::Take | Ask::Renew { .. }, _) => Answer::Found(found),
    })
}

/// The length of a lease, the fourth parameter.
const LENGTH: &str = "$4 * interval '1 millisecond'";

/// A condition on the lease under which an entry of the log may begin an epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    process: Uuid,
    /// The term of the lease that its process must have; 0 if there may be none.
    term: i64,
}

impl Guard {
    /// The log may be taken over by who has this lease, or, without one, while nobody has one.
    pub(super) fn of(tenure: Option<&Tenure>) -> Self {
        let (process, term) = tenure.map_or((Uuid::nil(), 0), |tenure| (tenure.process(), tenure.term()));
        Self { process, term }
    }

    /// The condition, with its parameters behind these.
    pub(super) fn condition<'a>(&'a self, parameters: &mut Vec<(&'a (dyn ToSql + Sync), Type)>) -> String {
        let first = parameters.len() + 1;
        parameters.extend::<[(&(dyn ToSql + Sync), Type); 2]>([(&self.process, Type::UUID), (&self.term, Type::INT8)]);
        let second = first + 1;
        format!(
            "CASE WHEN ${second} = 0 THEN NOT EXISTS (SELECT FROM systole.lease WHERE part = 0 AND until > clock_timestamp()) \
             ELSE EXISTS (SELECT FROM systole.lease WHERE part = 0 AND until > clock_timestamp() AND process = ${first} \
             AND term = ${second}) END"
        )
    }

    /// Checks the condition by itself.
    ///
    /// # Errors
    /// [`Problem::Leased`] if another node has the lease, [`Problem::NoLease`] if this one has it no more.
    pub(super) async fn check(&self, client: &Client) -> Result<(), Trouble> {
        let mut parameters = Vec::new();
        let condition = self.condition(&mut parameters);
        let sql = format!("SELECT {condition}, (SELECT node FROM systole.lease WHERE part = 0)");
        let rows = client.query_typed(&sql, &parameters).await?;
        match rows.first().map(|row| (row.get::<_, bool>(0), row.get::<_, Option<String>>(1))) {
            Some((false, node)) if self.term == 0 => Err(Problem::Leased { node: node.unwrap_or_default() }.into()),
            Some((false, _)) => Err(Problem::NoLease.into()),
            Some((true, _)) | None => Ok(()),
        }
    }
}

/// Reads the nodes and the lease.
pub(super) async fn state(client: &Client) -> Result<ClusterState, Trouble> {
    let sql = format!(
        "SELECT {HOLDER}, greatest(0, extract(epoch FROM clock_timestamp() - since) * 1000)::bigint, \
         COALESCE((SELECT epoch FROM systole.fed WHERE part = 0), 0) FROM systole.lease WHERE part = 0"
    );
    let rows = client.query_typed(&sql, &[]).await?;
    let lease = rows
        .first()
        .and_then(|row| Some(LeaseState { holder: holder(row, 0)?, since: duration(row.get(6)), epoch: row.get(7) }));
    let nodes = client.query_typed(&format!("{SEEN} ORDER BY name"), &[]).await?;
    Ok(ClusterState { lease, nodes: nodes.iter().map(seen_node).collect() })
}
