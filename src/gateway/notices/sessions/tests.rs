//! Tests of sessions, with a delegate in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::delegate::{Block, BoxFuture, DelegateError};
use super::super::session::{ROWS, SILENCE};
use super::*;

/// Rows in memory, each with its holder, and the failure of the next read.
#[derive(Default)]
struct Rows {
    all: Mutex<BTreeMap<usize, Option<(SessionId, NoticeToken)>>>,
    asked: AtomicUsize,
    trouble: Mutex<Option<Trouble>>,
    /// True if reads give more rows than there is room for.
    greedy: bool,
}

enum Trouble {
    Refuses,
    Panics,
    Hangs,
}

impl Rows {
    fn of(count: usize) -> Arc<Self> {
        Arc::new(Self { all: Mutex::new((0..count).map(|row| (row, None)).collect()), ..Self::default() })
    }

    fn free(&self) -> usize {
        self.all.lock().unwrap().values().filter(|held| held.is_none()).count()
    }
}

impl QueueDelegate for Arc<Rows> {
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            let trouble = self.trouble.lock().unwrap().take();
            match trouble {
                Some(Trouble::Refuses) => return Err("not today".into()),
                Some(Trouble::Panics) => std::panic::resume_unwind(Box::new("as told")),
                Some(Trouble::Hangs) => std::future::pending().await,
                None => {}
            }
            let (token, most) = (NoticeToken::draw(), if self.greedy { usize::MAX } else { call.limits.rows });
            let mut all = self.all.lock().unwrap();
            let free = all.iter_mut().filter(|(_, held)| held.is_none()).take(most);
            let rows = free.map(|(row, held)| {
                *held = Some((call.session, token));
                Row { id: row.to_string(), blocks: vec![Block::text(row.to_string())] }
            });
            Ok(Some(QueueRead { token, rows: rows.collect() }))
        })
    }

    fn confirm(&self, session: SessionId, token: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
        Box::pin(async move {
            let all = self.all.lock().unwrap();
            let held = all.iter().filter(|(_, held)| **held == Some((session, token)));
            Ok(held.map(|(row, _)| row.to_string()).collect())
        })
    }

    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut all = self.all.lock().unwrap();
            let its = |held: &Option<(SessionId, NoticeToken)>| {
                held.is_some_and(|(of, under)| of == session && token.is_none_or(|token| token == under))
            };
            all.values_mut().filter(|held| its(held)).for_each(|held| *held = None);
            Ok(())
        })
    }
}

/// Sessions of one client over some rows.
struct Site {
    rows: Arc<Rows>,
    sessions: Arc<Sessions>,
    clock: Clock,
}

fn ada() -> Name {
    Name::parse("ada").unwrap()
}

impl Site {
    fn over(rows: Arc<Rows>) -> Self {
        Self { sessions: Arc::new(Sessions::new(Arc::new(rows.clone()))), rows, clock: Clock::of_runtime() }
    }

    /// A call of that session that succeeds.
    async fn call(&self, name: &str) -> Option<QueueRead> {
        let session = self.sessions.enter(&ada(), name, self.clock.now()).await.unwrap();
        self.sessions.read((&ada(), name), session, Bytes::from_static(b"<call/>"), &self.clock).await
    }

    async fn confirm(&self, name: &str, token: NoticeToken) -> Vec<(NoticeToken, Vec<String>)> {
        let session = self.sessions.touch(&ada(), name, self.clock.now()).unwrap();
        self.sessions.confirm((&ada(), name), session, vec![token]).await.unwrap()
    }
}

/// Drops a future after so many polls; true if it was ready before.
async fn cut<F: Future>(future: F, polls: usize) -> bool {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Runs every task that is ready.
async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_while_sessions_end_leaves_them_nothing() {
    for polls in 0.. {
        let site = Site::over(Rows::of(150));
        assert_eq!(site.call("s").await.unwrap().rows.len(), 100);
        let done = cut(site.sessions.end(&ada(), "s"), polls).await;
        settle().await;
        let there = site.sessions.unconfirmed(&ada(), "s").is_some();
        assert_eq!(site.rows.free(), if there { 50 } else { 150 }, "after {polls} polls");
        // Another request finds that two sessions have expired.
        let site = Site::over(Rows::of(150));
        assert!(site.call("s").await.is_some() && site.call("t").await.is_some());
        assert_eq!(site.rows.free(), 0);
        tokio::time::advance(SILENCE).await;
        let found = cut(site.sessions.enter(&ada(), "u", site.clock.now()), polls).await;
        settle().await;
        let there = site.sessions.unconfirmed(&ada(), "s").is_some();
        assert_eq!(site.rows.free(), if there { 0 } else { 150 }, "after {polls} polls");
        if done && found {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_silent_session_has_comes_again_under_a_new_token() {
    let site = Site::over(Rows::of(1));
    tokio::spawn(site.sessions.clone().lapse(site.clock.clone()));
    let first = site.call("s").await.unwrap();
    assert!(site.call("s").await.is_none() && site.call("other").await.is_none(), "somebody has it");
    // Each request of a session extends it.
    for _ in 0..3 {
        tokio::time::advance(SILENCE - Duration::from_secs(1)).await;
        site.sessions.touch(&ada(), "s", site.clock.now()).unwrap();
        assert_eq!(site.rows.free(), 0);
    }
    tokio::time::advance(SILENCE).await;
    assert_eq!(site.sessions.touch(&ada(), "s", site.clock.now()), None, "it is over, swept or not");
    while site.rows.free() == 0 {
        tokio::task::yield_now().await;
    }
    let again = site.call("s").await.unwrap();
    assert!(again.token != first.token && again.rows == first.rows);
    assert!(site.confirm("s", first.token).await.is_empty(), "the old token is nobody's");
    assert_eq!(site.confirm("s", again.token).await, [(again.token, vec!["0".to_owned()])]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_over_begins_anew_also_if_nobody_swept() {
    let site = Site::over(Rows::of(1));
    let first = site.call("s").await.unwrap();
    tokio::time::advance(SILENCE).await;
    let again = site.call("s").await.unwrap();
    assert_eq!(again.rows, first.rows);
    assert!(site.confirm("s", first.token).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_session_has_is_free_and_a_name_can_be_used_again() {
    let site = Site::over(Rows::of(3));
    let first = site.call("s").await.unwrap();
    assert!(site.sessions.end(&ada(), "s").await);
    assert!(!site.sessions.end(&ada(), "s").await);
    assert_eq!(site.rows.free(), 3);
    let again = site.call("s").await.unwrap();
    assert!(site.confirm("s", first.token).await.is_empty());
    assert_eq!(again.rows.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_its_delegate_thinks_keeps_nothing() {
    let site = Site::over(Rows::of(2));
    let ada = ada();
    let (read, ended) = tokio::join!(site.call("s"), site.sessions.end(&ada, "s"));
    assert!(ended && read.is_none());
    assert_eq!(site.rows.free(), 2);
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_nothing_is_pending() {
    let site = Site::over(Rows::of(1));
    for trouble in [Trouble::Refuses, Trouble::Panics, Trouble::Hangs] {
        *site.rows.trouble.lock().unwrap() = Some(trouble);
        assert_eq!(site.call("s").await, None);
    }
    assert_eq!(site.rows.asked.load(Ordering::Relaxed), 3, "once for each call");
    assert!(site.call("s").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_more_than_there_is_room_for_keeps_it() {
    let rows = Arc::new(Rows { greedy: true, ..Arc::into_inner(Rows::of(LIMITS.rows + 1)).unwrap() });
    let site = Site::over(rows);
    assert_eq!(site.call("s").await, None);
    assert_eq!(site.rows.free(), LIMITS.rows + 1);
    let one = |text: usize| Row { id: "a".into(), blocks: vec![Block::text("x".repeat(text))] };
    let read = |rows| QueueRead { token: NoticeToken::draw(), rows };
    assert!(fits(&read(vec![one(LIMITS.bytes * 2)]), LIMITS).is_ok(), "a single row of any size comes");
    assert!(fits(&read(vec![one(1), one(LIMITS.bytes - 1)]), LIMITS).is_ok());
    assert!(fits(&read(vec![one(1), one(LIMITS.bytes)]), LIMITS).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_rest_rides_on_the_next_call_until_as_much_is_unconfirmed_as_may_be() {
    let site = Site::over(Rows::of(ROWS + 50));
    let mut last = None;
    for _ in 0..ROWS / LIMITS.rows {
        let read = site.call("s").await.unwrap();
        assert_eq!(read.rows.len(), LIMITS.rows);
        last = Some(read.token);
    }
    assert_eq!(site.call("s").await, None);
    assert_eq!(site.confirm("s", last.unwrap()).await[0].1.len(), LIMITS.rows);
    assert_eq!(site.call("s").await.unwrap().rows.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_principal_has_so_many_sessions_and_each_has_names_of_its_own() {
    let site = Site::over(Rows::of(0));
    let (now, bob) = (site.clock.now(), Name::parse("bob").unwrap());
    for number in 0..SESSIONS {
        site.sessions.enter(&ada(), &number.to_string(), now).await.unwrap();
    }
    assert_eq!(site.sessions.enter(&ada(), "more", now).await, None);
    let (hers, his) = (site.sessions.enter(&ada(), "0", now).await, site.sessions.enter(&bob, "0", now).await);
    assert!(hers.is_some() && his.is_some() && hers != his);
    // An expired session takes no place.
    assert!(site.sessions.enter(&ada(), "more", now.after(SILENCE)).await.is_some());
}
