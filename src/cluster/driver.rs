//! The thread of the lease: it asks the database what the machine wants to know, and tells the node what came of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Method;
use systole_core::lease::{Answer, Ask, Effect, End, Input, Lease};
use systole_store::clock::steady;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::forward::HOP;
use super::view::View;
use crate::journal::{JournalError, LeaseStore};
use crate::outbound::http::{Client, Request};
use crate::runtime::Tenure;

/// The longest sleep between two looks at the steady clock, which goes on while the machine sleeps; timers do not.
const LOOK: Duration = Duration::from_secs(1);

/// Time for a poke of another node.
const POKE: Duration = Duration::from_secs(1);

/// A command to the thread.
#[derive(Debug)]
pub(super) enum Command {
    StandBy,
    Rest(Duration),
    /// Give the lease up, and take none.
    Release(oneshot::Sender<()>),
    /// The lease may have changed.
    Poke,
    End,
}

/// What came of a question.
struct Told {
    number: u64,
    answer: Result<Answer, JournalError>,
    /// The URLs of the nodes that may take over, behind a release.
    nodes: Vec<Arc<str>>,
}

struct Driver {
    lease: Lease,
    view: Arc<View>,
    tenure: Option<Tenure>,
    questions: mpsc::UnboundedSender<(u64, Ask)>,
    begin: mpsc::UnboundedSender<Tenure>,
    /// Those who wait for the end of the lease.
    releasing: Vec<oneshot::Sender<()>>,
    /// The nodes to tell of it.
    nodes: Vec<Arc<str>>,
    client: Client,
    pokes: JoinSet<()>,
    /// True while the database does not answer, which is logged once.
    fails: bool,
}

/// Starts the thread.
pub(super) fn start(
    store: Box<dyn LeaseStore>,
    view: Arc<View>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    begin: mpsc::UnboundedSender<Tenure>,
    client: Client,
) -> io::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
        let (questions, asked) = mpsc::unbounded_channel();
        let (tell, mut told) = mpsc::unbounded_channel();
        let lease = Lease::new(view.card.lease, view.card.process.as_u128());
        let (tenure, releasing, nodes, pokes, fails) = (None, Vec::new(), Vec::new(), JoinSet::new(), false);
        let mut driver = Driver { lease, view, tenure, questions, begin, releasing, nodes, client, pokes, fails };
        runtime.block_on(async {
            tokio::select! {
                () = driver.run(&mut commands, &mut told) => {}
                () = ask(store, asked, tell) => {}
            }
        });
        // Nobody renews it from now on.
        driver.tenure.iter().for_each(Tenure::end);
        runtime.shutdown_background();
    })
}

/// Asks the database; a question that is under way is given up for a new one.
async fn ask(
    mut store: Box<dyn LeaseStore>,
    mut asked: mpsc::UnboundedReceiver<(u64, Ask)>,
    tell: mpsc::UnboundedSender<Told>,
) {
    let mut next = asked.recv().await;
    while let Some((number, ask)) = next {
        let work = async {
            let answer = store.ask(ask).await;
            // A node that learns it by its next question takes over later; no more is lost.
            let nodes = match (ask, &answer) {
                (Ask::Release { .. }, Ok(_)) => store.nodes().await.unwrap_or_default(),
                _ => Vec::new(),
            };
            Told { number, answer, nodes: nodes.into_iter().map(|node| node.url).collect() }
        };
        next = tokio::select! {
            biased;
            newer = asked.recv() => newer,
            done = work => {
                let _ = tell.send(done);
                asked.recv().await
            }
        };
    }
}

impl Driver {
    async fn run(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, told: &mut mpsc::UnboundedReceiver<Told>) {
        self.handle(Input::Tick);
        loop {
            let wait = self.lease.next_tick().saturating_sub(steady()).min(LOOK);
            tokio::select! {
                biased;
                Some(told) = told.recv() => self.told(told),
                command = commands.recv() => match command {
                    Some(Command::StandBy) => self.handle(Input::StandBy),
                    Some(Command::Rest(time)) => self.handle(Input::Rest(time)),
                    Some(Command::Release(tell)) => {
                        self.releasing.push(tell);
                        self.end();
                        self.handle(Input::Leave);
                        self.handle(Input::Release);
                    }
                    Some(Command::Poke) => self.handle(Input::Poke),
                    Some(Command::End) | None => return,
                },
                Some(_) = self.pokes.join_next() => self.poked(),
                () = tokio::time::sleep(wait) => self.handle(Input::Tick),
            }
        }
    }

    fn told(&mut self, told: Told) {
        let Told { number, answer, nodes } = told;
        self.nodes.extend(nodes);
        match answer {
            Ok(answer) => {
                self.view.note_answer();
                if std::mem::take(&mut self.fails) {
                    tracing::info!(node = %self.view.card.name, "the database answers for the lease again");
                }
                self.handle(Input::Answered(number, answer));
            }
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::warn!(node = %self.view.card.name, %error, "the database does not answer for the lease; trying again");
                }
                self.handle(Input::Unanswered(number));
            }
        }
    }

    fn handle(&mut self, input: Input) {
        let node = self.view.card.name.clone();
        for effect in self.lease.handle(input, steady()) {
            match effect {
                // The other end is on this thread.
                Effect::Ask(number, ask) => drop(self.questions.send((number, ask))),
                Effect::Begin { term, until, before } => {
                    let from = before.as_ref().filter(|before| before.process != self.view.card.process.as_u128());
                    match from {
                        Some(before) if before.handed_over => {
                            tracing::info!(%node, term, from = %before.node, "takes the organism over: it was handed over");
                        }
                        Some(before) => {
                            tracing::warn!(%node, term, from = %before.node, "takes the organism over: the lease of that node has ended");
                        }
                        None => tracing::info!(%node, term, "takes the organism: no other node has it"),
                    }
                    self.view.takeovers.fetch_add(1, Ordering::Relaxed);
                    let tenure = Tenure::new(self.view.card.process, term, until);
                    self.tenure = Some(tenure.clone());
                    self.view.hold(Some(tenure.clone()));
                    // The node lives as long as this thread.
                    let _ = self.begin.send(tenure);
                }
                Effect::Extend(until) => self.tenure.iter().for_each(|tenure| tenure.extend(until)),
                Effect::End(why) => {
                    let why = match why {
                        End::Lapsed => "the database did not confirm it in time",
                        End::Lost => "the database has given it to another node",
                    };
                    tracing::warn!(%node, why, "this node has the lease no more, and stops the organism");
                    self.end();
                }
                Effect::Released => self.released(),
                Effect::Found(holder) => self.view.found(holder),
            }
        }
    }

    /// Ends the lease, for all parts of the process.
    fn end(&mut self) {
        if let Some(tenure) = self.tenure.take() {
            tenure.end();
            self.view.hold(None);
        }
    }

    /// Tells the nodes that may take over, and then those who wait.
    fn released(&mut self) {
        for url in std::mem::take(&mut self.nodes) {
            if url == self.view.card.url {
                continue;
            }
            let (client, name) = (self.client.clone(), self.view.card.name.clone());
            self.pokes.spawn(async move {
                let Ok(url) = Url::parse(&format!("{url}/livez")) else { return };
                let mut request = Request::new(Method::GET, url);
                if let Ok(value) = name.parse() {
                    request.headers.insert(HOP, value);
                }
                // It polls by itself, too.
                let _ = timeout(POKE, client.execute(request)).await;
            });
        }
        self.poked();
    }

    fn poked(&mut self) {
        if self.pokes.is_empty() {
            // They may have gone.
            for tell in self.releasing.drain(..) {
                let _ = tell.send(());
            }
        }
    }
}
