//! HTTP/1.1 on one connection, by hyper.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use axum::http::{StatusCode, Version};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Times;
use super::admission::{Admitted, RequestPermit};
use super::refusal::HEAD;
use super::wire::{Answering, ClientSide, PROBES, Progress, Wire};

/// Serves HTTP until the client leaves, or the entrance ends.
pub(super) async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    admitted: Arc<Admitted>,
    times: Times,
    router: Router,
    mut end: watch::Receiver<bool>,
) {
    let (progress, router) = (Arc::new(Progress::default()), TowerToHyperService::new(router));
    let wire = Wire::new(stream, progress.clone(), times.stall);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let permit = RequestPermit::begin(&admitted);
        progress.begin(!request.body().is_end_stream());
        if request.version() >= Version::HTTP_11 {
            progress.await_head();
        }
        let mut request: Request = request.map(|body| Body::new(TrackedBody { body, progress: progress.clone() }));
        request.extensions_mut().insert(permit.clone());
        let client = progress.client();
        request.extensions_mut().insert(client.clone());
        let under_way = (permit, Answering::begin(&progress));
        let (answer, progress) = (router.call(request), progress.clone());
        async move {
            tokio::select! {
                biased;
                answer = answer => Ok(answer.map(|response| finish(response, under_way, &progress)).unwrap_or_else(|never| match never {})),
                () = client.given_up() => Err(HungUp),
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.header)
        .max_header_size(HEAD)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(wire), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = async { drop(end.wait_for(|end| *end).await) };
    // A client may leave in the middle: that is no error.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// A client closed its side, and the answer did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("the client has hung up")]
struct HungUp;

/// The answer to a request, which is in flight until the answer is sent.
fn finish(mut response: Response, under_way: (RequestPermit, Answering), progress: &Progress) -> Response {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        progress.upgrade();
        return response;
    }
    // A connection with an unread body takes no further request: its client learns that from the header.
    if progress.is_unread() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(STREAM));
    let client = progress.client();
    response.map(|body| {
        let body = GuardedBody::new(body, under_way);
        if is_stream { Body::new(ProbingBody::new(body, client)) } else { Body::new(body) }
    })
}

/// The media type of server-sent events.
const STREAM: &[u8] = b"text/event-stream";
/// A comment in them, which their readers ignore.
const COMMENT: &[u8] = b":\n\n";

/// Server-sent events, with comments once the client has closed its side: if it has left, its system refuses them, and the
/// connection ends.
struct ProbingBody<T> {
    body: GuardedBody<T>,
    /// The end of the client's side, then the pause behind each probe.
    next: Pin<Box<dyn Future<Output = ()> + Send>>,
    probes: usize,
}

impl<T> ProbingBody<T> {
    fn new(body: GuardedBody<T>, client: ClientSide) -> Self {
        Self { body, next: Box::pin(async move { client.closed().await }), probes: 0 }
    }
}

impl<T: Unpin> HttpBody for ProbingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        // Between two events.
        if self.probes == PROBES.len() {
            return Poll::Pending;
        }
        ready!(self.next.as_mut().poll(cx));
        self.next = Box::pin(sleep(PROBES[self.probes]));
        self.probes += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request.
struct TrackedBody {
    body: Incoming,
    progress: Arc<Progress>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.read();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Most bytes of a body that are handed over at once.
const PIECE: usize = 16 << 10;

/// A body with a value that is dropped when the body is sent, or the client has left.
///
/// It is handed over piece by piece: hyper takes as many pieces as it has room for ([`HEAD`]), and would keep a body
/// that is handed over whole in memory until the client has read it.
pub(crate) struct GuardedBody<T> {
    body: Body,
    /// The rest of the part that is being handed over.
    rest: Bytes,
    _until_sent: T,
}

impl<T> GuardedBody<T> {
    pub(crate) fn new(body: Body, until_sent: T) -> Self {
        Self { body, rest: Bytes::new(), _until_sent: until_sent }
    }
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.len() > PIECE => self.rest = data,
                    Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.rest.len().min(PIECE);
        // A copy: a slice of the rest would keep all of it in memory.
        let piece = Bytes::copy_from_slice(&self.rest.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::super::address::Source;
    use super::super::admission::{Admission, Bounds};
    use super::*;

    const TIMES: Times = Times { header: Duration::from_secs(10), stall: Duration::from_secs(30) };

    /// A client and its connection, with a buffer of so many bytes between them.
    fn connect(bytes: usize) -> (DuplexStream, Arc<Admission>, JoinHandle<()>) {
        let router = Router::new()
            .route("/small", get(async || "small"))
            .route("/large", get(async || "x".repeat(1 << 20)))
            .route("/blind", post(async || "not read"));
        connect_to(router, bytes)
    }

    fn connect_to(router: Router, bytes: usize) -> (DuplexStream, Arc<Admission>, JoinHandle<()>) {
        let admission = Admission::new(Bounds { connections: 8, reserve: 1, per_address: 8, per_principal: 8 });
        let admitted = admission.admit(Source::of([192, 0, 2, 1].into())).unwrap();
        let (client, server) = duplex(bytes);
        let (keep, end) = watch::channel(false);
        let served = tokio::spawn(async move {
            serve_http(server, admitted, TIMES, router, end).await;
            drop(keep);
        });
        (client, admission, served)
    }

    async fn all(mut client: DuplexStream) -> String {
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_a_slow_head_and_an_idle_connection_have_the_time_of_a_head() {
        for said in ["", "GET /small HTTP/1.1\r\nHo", "GET /small HTTP/1.1\r\nHost: a\r\n\r\n"] {
            let (mut client, admission, served) = connect(4096);
            let began = Instant::now();
            client.write_all(said.as_bytes()).await.unwrap();
            served.await.unwrap();
            assert_eq!(began.elapsed(), TIMES.header, "{said:?}");
            assert_eq!(admission.figures(), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_of_its_answer_is_left_after_its_time() {
        let (mut client, _, served) = connect(4096);
        client.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let began = Instant::now();
        served.await.unwrap();
        assert_eq!(began.elapsed(), TIMES.stall);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_under_way_until_the_last_of_it_is_taken() {
        let held = Arc::new(());
        let answer = held.clone();
        let answer =
            move || async move { Response::new(Body::new(GuardedBody::new("x".repeat(1 << 20).into(), answer))) };
        let (mut client, _, served) = connect_to(Router::new().route("/held", get(answer)), 4096);
        let of_route = Arc::strong_count(&held);
        client.write_all(b"GET /held HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut taken = vec![0; 900_000];
        client.read_exact(&mut taken[..100]).await.unwrap();
        client.read_exact(&mut taken[100..]).await.unwrap();
        assert!(Arc::strong_count(&held) > of_route, "it is not all sent");
        let said = String::from_utf8(taken).unwrap() + &all(client).await;
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-length: 1048576") && body == "x".repeat(1 << 20), "{head}");
        served.await.unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hyper_refuses_is_answered_whatever_came_before_it() {
        let good = "GET /small HTTP/1.1\r\nHost: a\r\n\r\n";
        for before in ["".to_owned(), good.to_owned(), good.repeat(3), "\r\n".to_owned()] {
            let (mut client, _, _served) = connect(1 << 20);
            client.write_all(format!("{before}nonsense\r\n\r\n").as_bytes()).await.unwrap();
            let said = all(client).await;
            assert_eq!(said.matches("200 OK").count(), before.matches("GET").count(), "{said}");
            assert_eq!(said.matches("HTTP/1.1 400 Bad Request\r\n").count(), 1, "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_whose_body_is_not_read_can_write_it_and_reads_its_answer() {
        let (mut client, _, served) = connect(4096);
        client.write_all(b"POST /blind HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await.unwrap();
        // More bytes than the connection holds.
        client.write_all(&vec![b'x'; 1_000_000]).await.unwrap();
        assert!(all(client).await.ends_with("not read"));
        served.await.unwrap();
        // A client that never ends its body is disconnected, too.
        let (mut client, _, served) = connect(4096);
        client.write_all(b"POST /blind HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx").await.unwrap();
        let began = Instant::now();
        served.await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(2));
    }

    /// A body of which nothing comes.
    struct Silent;

    impl HttpBody for Silent {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }

    /// Sends bytes, and closes the client's side: the other one is still read.
    async fn said_and_closed(said: &[u8]) -> (tokio::io::ReadHalf<DuplexStream>, Arc<Admission>, JoinHandle<()>) {
        let slow = get(async |request: Request| {
            let client = request.extensions().get::<super::super::ClientSide>().cloned().unwrap();
            client.closed().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            "slow"
        });
        let later = get(async || {
            tokio::time::sleep(Duration::from_secs(5)).await;
            "later"
        });
        let router = Router::new()
            .route("/slow", slow)
            .route("/later", later)
            .route("/never", get(async || std::future::pending::<&str>().await))
            .route("/blind", post(async || "not read"))
            .route("/read", post(async |body: String| body))
            .route("/large", get(async || "x".repeat(1 << 20)));
        let (client, admission, served) = connect_to(router, 4096);
        let (reader, mut writer) = tokio::io::split(client);
        // The last bytes come with the end, as bodies do.
        let (first, last) = said.split_at(said.len() - said.len().min(3));
        writer.write_all(first).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        writer.write_all(last).await.unwrap();
        writer.shutdown().await.unwrap();
        (reader, admission, served)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_closes_its_side_behind_its_requests_gets_all_answers() {
        let head = |path: &str| format!("{path} HTTP/1.1\r\nHost: a\r\n");
        for (said, expected) in [
            (format!("{}\r\n", head("GET /slow")), vec!["slow"]),
            (format!("{}\r\n", head("GET /later")).repeat(3), vec!["later"; 3]),
            (format!("{}Content-Length: 4\r\n\r\nbody", head("POST /read")), vec!["body"]),
            (format!("{}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", head("POST /read")), vec!["body"]),
            (format!("{}Content-Length: 4\r\n\r\nbody", head("POST /blind")), vec!["not read"]),
            ("GET /slow HTTP/1.0\r\nHost: a\r\n\r\n".to_owned(), vec!["slow"]),
            (format!("{}\r\n", head("GET /large")), vec!["xxxxx"]),
        ] {
            let (mut reader, admission, served) = said_and_closed(said.as_bytes()).await;
            let mut all = String::new();
            reader.read_to_string(&mut all).await.unwrap();
            assert_eq!(all.matches(" 200 OK").count(), expected.len(), "{said}: {all}");
            assert!(expected.iter().all(|one| all.contains(one)), "{said}: {all}");
            served.await.unwrap();
            assert_eq!(admission.figures(), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_left_keeps_no_call() {
        let events = get(async || {
            let events = Body::new(Silent);
            let mut response = Response::new(events);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            response
        });
        let router = || {
            Router::new()
                .route("/never", get(async || std::future::pending::<&str>().await))
                .route("/events", events.clone())
        };
        for (path, read) in [("/never", ""), ("/events", "HTTP/1.1 200 OK")] {
            let (mut client, admission, served) = connect_to(router(), 4096);
            client.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
            let mut head = vec![0; read.len()];
            client.read_exact(&mut head).await.unwrap();
            assert_eq!(head, read.as_bytes());
            let began = Instant::now();
            drop(client);
            served.await.unwrap();
            assert_eq!((began.elapsed(), admission.figures()), (Duration::ZERO, (0, 0)), "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_gets_interim_answers_if_it_knows_them() {
        for (version, interim) in [("1.1", 4), ("1.0", 0)] {
            let request = format!("GET /slow HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n");
            let (mut reader, _, served) = said_and_closed(request.as_bytes()).await;
            let mut all = String::new();
            reader.read_to_string(&mut all).await.unwrap();
            assert_eq!(all.matches("HTTP/1.1 102 Processing\r\n\r\n").count(), interim, "{all}");
            assert!(all.ends_with("slow"), "{all}");
            served.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_closed_its_side_keeps_no_call_for_long() {
        // A request whose body doesn't come whole ends soon, a connection without one at once.
        for (said, seconds) in [
            ("GET /never HTTP/1.1\r\nHost: a\r\n\r\n", 10),
            ("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbody", 1),
            ("GET /never HTTP/1.1\r\n", 0),
            ("", 0),
        ] {
            let (mut reader, admission, served) = said_and_closed(said.as_bytes()).await;
            let began = Instant::now();
            let mut all = String::new();
            reader.read_to_string(&mut all).await.unwrap();
            served.await.unwrap();
            assert!(!all.contains("200 OK"), "{said}: {all}");
            assert_eq!((began.elapsed(), admission.figures()), (Duration::from_secs(seconds), (0, 0)), "{said}");
        }
    }
}
