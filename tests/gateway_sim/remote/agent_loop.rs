//! The loop of an agent, on a clock that the test turns.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::remote::{
    AgentState, BoxFuture, Failed, Handler, Inbound, InboundDelivery, LoopEnd, LoopOptions, Presence, RemoteError,
    run_agent_loop,
};
use systole::vocab::XmlLimits;
use tokio::sync::watch;
use tokio::time::Instant;

use super::setup::{item, within};

/// Actions of the agent with their times: seconds since the start.
#[derive(Clone)]
struct Diary(Arc<Mutex<Vec<(u64, &'static str)>>>, Instant);

impl Diary {
    fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push((self.1.elapsed().as_secs(), what));
    }

    fn of(&self, what: &str) -> Vec<u64> {
        self.0.lock().unwrap().iter().filter(|(_, noted)| *noted == what).map(|(at, _)| *at).collect()
    }

    fn words(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().iter().map(|(_, what)| *what).collect()
    }
}

struct Office {
    diary: Diary,
    /// Results of heartbeats; the last one repeats.
    states: Vec<Result<AgentState, u16>>,
    heard: AtomicU32,
}

fn refused(status: u16) -> RemoteError {
    let (what, code, detail) = ("it".to_owned(), "x".to_owned(), "x".to_owned());
    RemoteError::Refused { what, status, code, detail, retry_after: None }
}

impl Office {
    fn new(diary: &Diary, states: &[Result<AgentState, u16>]) -> Self {
        Self { diary: diary.clone(), states: states.to_vec(), heard: AtomicU32::new(0) }
    }
}

impl Presence for Office {
    fn heartbeat(&self) -> BoxFuture<'_, Result<AgentState, RemoteError>> {
        self.diary.note("heartbeat");
        let at = self.heard.fetch_add(1, Ordering::Relaxed) as usize;
        let state = self.states[at.min(self.states.len() - 1)].map_err(refused);
        Box::pin(std::future::ready(state))
    }
}

/// Scripted batches; the last one repeats.
struct Post {
    diary: Diary,
    batches: Vec<Result<usize, u16>>,
    taken: usize,
    interval: Duration,
}

impl Post {
    fn new(diary: &Diary, batches: &[Result<usize, u16>]) -> Self {
        Self { diary: diary.clone(), batches: batches.to_vec(), taken: 0, interval: Duration::from_secs(5) }
    }
}

impl InboundDelivery for Post {
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
        Box::pin(async move {
            self.diary.note("batch");
            let batch = self.batches[self.taken.min(self.batches.len() - 1)].map_err(refused);
            self.taken += 1;
            for number in 0..*batch.as_ref().unwrap_or(&0) {
                let item = item(number as u32);
                let id = item["id"].as_str().unwrap().parse().unwrap();
                let message =
                    Inbound::read(item["envelope"].as_str().unwrap(), Some(id), &XmlLimits::default()).unwrap();
                handler.handle(message).await.unwrap();
            }
            batch
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.diary.note("stop");
        Box::pin(std::future::ready(()))
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

fn idle(_: Inbound) -> std::future::Ready<Result<String, Failed>> {
    std::future::ready(Ok(String::new()))
}

#[test]
fn a_round_is_tasks_a_heartbeat_if_due_a_batch_and_a_wait() {
    within(async {
        let diary = Diary::new();
        let (mut post, office) = (Post::new(&diary, &[Ok(0)]), Office::new(&diary, &[Ok(AgentState::Active)]));
        let tasks = {
            let diary = diary.clone();
            Box::new(move || -> BoxFuture<'static, Result<(), Failed>> {
                diary.note("tasks");
                Box::pin(std::future::ready(Ok(())))
            })
        };
        let options = LoopOptions::default().iterations(Some(14)).tasks(Some(tasks));
        assert_eq!(run_agent_loop(&mut post, &idle, &office, options).await, LoopEnd::MaxIterations);
        assert_eq!(diary.words()[..4], ["tasks", "heartbeat", "batch", "tasks"]);
        assert_eq!(diary.of("batch"), (0..14).map(|round| round * 5).collect::<Vec<_>>());
        assert_eq!(diary.of("tasks"), diary.of("batch"));
        assert_eq!(diary.of("heartbeat"), [0, 30, 60]);
        assert_eq!(diary.of("stop").len(), 1);
    });
}

#[test]
fn it_ends_as_paused_and_as_removed_and_stops_its_delivery() {
    within(async {
        for (state, end) in [(AgentState::Paused, LoopEnd::Paused), (AgentState::Removed, LoopEnd::Removed)] {
            let diary = Diary::new();
            let (mut post, office) =
                (Post::new(&diary, &[Ok(0)]), Office::new(&diary, &[Ok(AgentState::Active), Ok(state)]));
            assert_eq!(run_agent_loop(&mut post, &idle, &office, LoopOptions::default()).await, end);
            assert_eq!((diary.of("heartbeat"), diary.of("batch").len()), (vec![0, 30], 6), "it takes nothing more");
            assert_eq!(diary.words().last(), Some(&"stop"));
        }
    });
}

#[test]
fn an_error_in_a_step_is_no_reason_to_end() {
    within(async {
        let diary = Diary::new();
        let office = Office::new(&diary, &[Err(500), Err(503), Ok(AgentState::Active)]);
        let mut post = Post::new(&diary, &[Err(500), Ok(1), Err(409), Ok(0)]);
        post.interval = Duration::ZERO;
        let count = Arc::new(AtomicU32::new(0));
        let tasks = {
            let count = count.clone();
            Box::new(move || -> BoxFuture<'static, Result<(), Failed>> {
                match count.fetch_add(1, Ordering::Relaxed) {
                    0 => panic!("it is broken"),
                    1 => Box::pin(std::future::ready(Err(Failed::new("no more coffee")))),
                    2 => Box::pin(async { panic!("later") }),
                    _ => Box::pin(std::future::ready(Ok(()))),
                }
            })
        };
        let options = LoopOptions::default().iterations(Some(5)).tasks(Some(tasks)).heartbeat(Duration::ZERO);
        assert_eq!(run_agent_loop(&mut post, &idle, &office, options).await, LoopEnd::MaxIterations);
        assert_eq!((diary.of("heartbeat").len(), count.load(Ordering::Relaxed)), (5, 5));
        // After an error the loop waits, whatever its delivery says.
        assert_eq!(diary.of("batch"), [0, 1, 1, 2, 2]);
    });
}

#[test]
fn a_token_that_is_good_no_more_ends_it_at_once() {
    within(async {
        let diary = Diary::new();
        let (mut post, office) =
            (Post::new(&diary, &[Ok(0), Err(401)]), Office::new(&diary, &[Ok(AgentState::Active)]));
        assert_eq!(run_agent_loop(&mut post, &idle, &office, LoopOptions::default()).await, LoopEnd::Removed);
        assert_eq!((diary.of("batch"), diary.of("stop")), (vec![0, 5], vec![5]));
    });
}

#[test]
fn its_program_ends_it_while_it_waits_and_after_what_it_handles() {
    within(async {
        let diary = Diary::new();
        let (stop, stopped) = watch::channel(false);
        let handler = {
            let (diary, stop) = (diary.clone(), stop.clone());
            move |_: Inbound| {
                let (diary, stop) = (diary.clone(), stop.clone());
                async move {
                    stop.send_replace(true);
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    diary.note("handled");
                    Ok::<_, Failed>(String::new())
                }
            }
        };
        let office = Office::new(&diary, &[Ok(AgentState::Active)]);
        let mut post = Post::new(&diary, &[Ok(0), Ok(1)]);
        let options = LoopOptions::default().stop(Some(stopped.clone()));
        assert_eq!(run_agent_loop(&mut post, &handler, &office, options).await, LoopEnd::Stopped);
        assert_eq!((diary.of("handled"), diary.of("stop")), (vec![65], vec![65]));

        // A long wait ends at once.
        stop.send_replace(false);
        let mut post = Post::new(&diary, &[Ok(0)]);
        post.interval = Duration::from_secs(3600);
        let start = Instant::now();
        let options = LoopOptions::default().stop(Some(stopped));
        let end = async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            stop.send_replace(true);
        };
        let (end, ()) = tokio::join!(run_agent_loop(&mut post, &idle, &office, options), end);
        assert_eq!((end, start.elapsed().as_secs()), (LoopEnd::Stopped, 7));
    });
}
