//! A client of HTTP/1.1 over TCP and TLS. Connections are pooled; redirects are answers, no proxy is used unless one is
//! given, and no request is repeated by the client itself.
//!
//! The client is hyper's pool over a connector of our own. A client library whose cargo features choose the TLS of all
//! its clients would choose for those of the whole program, a user's own among them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::http::uri::{InvalidUri, Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use systole_core::vocab::Traceparent;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower_service::Service;
use url::Url;

use super::address::{AddressRefused, Guard};
use super::failure::chain;
#[cfg(feature = "testing")]
use crate::network::{Network, NetworkStream};

/// Time for which an idle connection is kept.
const IDLE: Duration = Duration::from_secs(90);
/// The silence after which a peer is probed, and the time between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
const AGENT: HeaderValue = HeaderValue::from_static(concat!("systole/", env!("CARGO_PKG_VERSION")));

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A pool of connections; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Client(legacy::Client<Connector, Body>);

/// A request without a body, until one is set.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The header that names the caller of a request in its trace (W3C Trace Context, section 3.2).
pub(crate) fn traceparent(caller: Traceparent) -> (HeaderName, HeaderValue) {
    let value = HeaderValue::try_from(caller.to_string()).expect("hexadecimal digits and hyphens");
    (HeaderName::from_static("traceparent"), value)
}

/// The head of an answer, and its body as it comes.
#[derive(Debug)]
pub(crate) struct Response(hyper::Response<Incoming>);

/// Reason why there is no answer, or no more of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the URL can't be sent to")]
    Url(#[source] InvalidUri),
    #[error("the request got no answer")]
    Request(#[source] legacy::Error),
    #[error("the answer broke off")]
    Body(#[source] hyper::Error),
}

impl Client {
    /// Makes a client that trusts the certificates of `tls` and connects, within `connect` if that is given, to
    /// addresses that the guard allows.
    pub(crate) fn new(tls: rustls::ClientConfig, guard: Option<Arc<Guard>>, connect: Option<Duration>) -> Self {
        Self::keeping(usize::MAX, tls, guard, connect, None)
    }

    /// Makes a client of one server that is reached through a proxy, if one is given, and connected within `connect`.
    pub(crate) fn by_proxy(tls: rustls::ClientConfig, proxy: Option<Uri>, connect: Duration) -> Self {
        Self::keeping(usize::MAX, tls, None, Some(connect), proxy)
    }

    /// Makes such a client without a pool: each request has a connection of its own, which is closed after the answer.
    pub(crate) fn unpooled(tls: rustls::ClientConfig, guard: Option<Arc<Guard>>) -> Self {
        Self::keeping(0, tls, guard, None, None)
    }

    fn keeping(
        idle: usize,
        tls: rustls::ClientConfig,
        guard: Option<Arc<Guard>>,
        connect: Option<Duration>,
        proxy: Option<Uri>,
    ) -> Self {
        let resolver = Resolver(guard);
        let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(connect);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(3));
        let tls = TlsConnector::from(Arc::new(tls));
        let connector = Connector {
            tcp,
            tls,
            limit: connect,
            proxy,
            #[cfg(feature = "testing")]
            resolver,
        };
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).pool_max_idle_per_host(idle);
        Self(builder.build(connector))
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn execute(&self, request: Request) -> Result<Response, HttpError> {
        let mut sent = hyper::Request::new(request.body);
        *sent.method_mut() = request.method;
        *sent.uri_mut() = Uri::try_from(request.url.as_str()).map_err(HttpError::Url)?;
        *sent.headers_mut() = request.headers;
        sent.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        sent.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        self.0.request(sent).await.map(Response).map_err(HttpError::Request)
    }
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Empty::new().boxed_unsync() }
    }
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The length of the body, where the head has it.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.0.body().size_hint().exact()
    }

    /// The head and the body, as they came.
    pub(crate) fn into_hyper(self) -> hyper::Response<Incoming> {
        self.0
    }

    /// The body, as it comes.
    #[cfg(feature = "mcp")]
    pub(crate) fn into_body(self) -> Incoming {
        self.0.into_body()
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.0.body_mut().frame().await {
            if let Ok(data) = frame.map_err(HttpError::Body)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl HttpError {
    /// Checks whether the request can't be made: nothing was sent.
    pub(super) fn is_of_request(&self) -> bool {
        matches!(self, Self::Url(_))
    }

    /// Checks whether TLS refused the peer: its certificate, its name, or the versions that it speaks.
    pub(crate) fn is_untrusted(&self) -> bool {
        chain(self).filter_map(|cause| cause.downcast_ref::<io::Error>()?.get_ref()).any(|inner| {
            use rustls::Error;
            let lasting = |error: &Error| {
                matches!(
                    error,
                    Error::InvalidCertificate(_)
                        | Error::PeerIncompatible(_)
                        | Error::AlertReceived(_)
                        | Error::UnsupportedNameType
                )
            };
            inner.downcast_ref::<Error>().is_some_and(lasting)
        })
    }

    /// Checks whether there was no connection.
    pub(crate) fn is_connect(&self) -> bool {
        matches!(self, Self::Request(error) if error.is_connect())
    }
}

/// Opens connections: TCP, and TLS over it for `https`. In the world of a test its network stands for TCP.
#[derive(Clone)]
struct Connector {
    tcp: HttpConnector<Resolver>,
    tls: TlsConnector,
    limit: Option<Duration>,
    proxy: Option<Uri>,
    #[cfg(feature = "testing")]
    resolver: Resolver,
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (tls, limit) = (self.tls.clone(), self.limit);
        #[cfg(feature = "testing")]
        if let Some(network) = Network::current() {
            let socket = connect_within(network, self.resolver.clone(), uri.clone());
            return Box::pin(limited(connect(socket, tls, uri), limit));
        }
        match &self.proxy {
            None => {
                let tcp = self.tcp.call(uri.clone());
                let tcp = async move { Ok(tcp.await?.into_inner()) };
                Box::pin(limited(connect(tcp, tls, uri), limit))
            }
            Some(proxy) if uri.scheme() == Some(&Scheme::HTTPS) => {
                let tcp = Tunnel::new(proxy.clone(), self.tcp.clone()).call(uri.clone());
                let tcp = async move { Ok(tcp.await?.into_inner()) };
                Box::pin(limited(connect(tcp, tls, uri), limit))
            }
            Some(proxy) => {
                let tcp = self.tcp.call(proxy.clone());
                let stream = async move { Ok(Stream { is_proxied: true, ..Stream::new(tcp.await?.into_inner()) }) };
                Box::pin(limited(stream, limit))
            }
        }
    }
}

async fn limited(
    connected: impl Future<Output = Result<Stream, BoxError>>,
    limit: Option<Duration>,
) -> Result<Stream, BoxError> {
    let Some(limit) = limit else { return connected.await };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("there was no connection for {limit:?}"));
    tokio::time::timeout(limit, connected).await.map_err(late)?
}

/// Connects over the network of a test's world; as for TCP, the resolver alone judges the addresses of a name.
#[cfg(feature = "testing")]
async fn connect_within(network: Network, mut resolver: Resolver, uri: Uri) -> Result<NetworkStream, BoxError> {
    let host = bare_host(&uri);
    let port = uri.port_u16().unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 });
    let found: Vec<_> = match host.parse() {
        Ok(literal) => vec![SocketAddr::new(literal, port)],
        Err(_) => resolver.call(host.parse()?).await?.map(|address| SocketAddr::new(address.ip(), port)).collect(),
    };
    let mut tried = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in found {
        tried = network.connect(address);
        if tried.is_ok() {
            break;
        }
    }
    Ok(tried?)
}

/// The host of an address, without the brackets around one of IPv6.
fn bare_host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

async fn connect<S: Socket + 'static>(
    tcp: impl Future<Output = Result<S, BoxError>>,
    tls: TlsConnector,
    uri: Uri,
) -> Result<Stream, BoxError> {
    let tcp = tcp.await?;
    if uri.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Stream::new(tcp));
    }
    let host = ServerName::try_from(bare_host(&uri).to_owned())?;
    Ok(Stream::new(tls.connect(host, tcp).await?))
}

/// Looks names up, and drops the addresses that the guard refuses. Literal addresses don't come here.
#[derive(Debug, Clone)]
struct Resolver(Option<Arc<Guard>>);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(allowed(found, guard.as_deref())?.into_iter())
        })
    }
}

/// The addresses that may be connected to; an error if there are none.
fn allowed(found: impl Iterator<Item = SocketAddr>, guard: Option<&Guard>) -> Result<Vec<SocketAddr>, BoxError> {
    let mut refused: Option<AddressRefused> = None;
    let mut check = |address: &SocketAddr| match guard.map_or(Ok(()), |guard| guard.check(address.ip())) {
        Ok(()) => true,
        Err(refusal) => {
            refused = Some(refusal);
            false
        }
    };
    let allowed: Vec<_> = found.filter(|address| check(address)).collect();
    match refused {
        Some(refused) if allowed.is_empty() => Err(refused.into()),
        None if allowed.is_empty() => Err(io::Error::other("the name has no address").into()),
        Some(_) | None => Ok(allowed),
    }
}

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A connection, with or without TLS.
struct Stream {
    socket: TokioIo<Box<dyn Socket>>,
    /// Set if the peer is a proxy, which is told the whole URL.
    is_proxied: bool,
}

impl Stream {
    fn new(socket: impl Socket + 'static) -> Self {
        Self { socket: TokioIo::new(Box::new(socket)), is_proxied: false }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxied)
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, into)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_addresses_of_a_name_only_the_public_ones_are_left() {
        let of = |texts: &[&str]| allowed(texts.iter().map(|text| text.parse().unwrap()), Some(&Guard::new()));
        assert_eq!(of(&["10.0.0.1:0", "1.1.1.1:0", "[::1]:0"]).unwrap(), ["1.1.1.1:0".parse().unwrap()]);
        let error = of(&["10.0.0.1:0", "[::1]:0"]).unwrap_err();
        assert!(error.is::<AddressRefused>(), "{error}");
        assert!(of(&[]).unwrap_err().to_string().contains("no address"));
    }
}
