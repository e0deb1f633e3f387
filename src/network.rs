//! A network in memory: connections by address between the tasks of a test.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use systole_store::entered::{Entered, Place};

/// Bytes that a connection holds until its other end reads them.
const BUFFER: usize = 64 << 10;

/// The first port that is given to who asks for any, and to the near end of a connection.
const FIRST_PORT: u16 = 49_152;

thread_local! {
    static ENTERED: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// A network in memory, whose connections join tasks of one thread. Clones are the same network.
///
/// Organisms and agents of a [`World`](crate::testing::World) have connections over its network alone: no address of the
/// machine takes part. Names are looked up as always, and addresses are checked as always.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    listeners: HashMap<SocketAddr, UnboundedSender<(NetworkStream, SocketAddr)>>,
    ends: Vec<Weak<End>>,
    ports: u16,
    is_down: bool,
}

/// An end of a connection; empty once it is cut.
type End = Mutex<Option<DuplexStream>>;

impl Network {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if something listens there.
    pub fn bind(&self, mut address: SocketAddr) -> io::Result<NetworkListener> {
        let mut state = self.lock();
        if address.port() == 0 {
            address.set_port(state.port());
        }
        if state.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (sender, connections) = unbounded_channel();
        state.listeners.insert(address, sender);
        Ok(NetworkListener { network: self.clone(), address, connections })
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if nothing listens there, or the network is [down](Self::go_down).
    pub fn connect(&self, address: SocketAddr) -> io::Result<NetworkStream> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let mut state = self.lock();
        if state.is_down {
            return Err(refused());
        }
        let from = SocketAddr::new(address.ip(), state.port());
        let listener = state.listeners.get(&address).ok_or_else(refused)?;
        let (near, far) = duplex(BUFFER);
        let [near, far] = [near, far].map(|end| NetworkStream(Arc::new(Mutex::new(Some(end)))));
        let ends = [&near, &far].map(|end| Arc::downgrade(&end.0));
        listener.send((far, from)).map_err(|_| refused())?;
        state.ends.retain(|end| end.strong_count() > 0);
        state.ends.extend(ends);
        Ok(near)
    }

    /// Cuts all connections, and refuses new ones until the network comes [up](Self::come_up) again. Who listens goes on.
    pub fn go_down(&self) {
        let ends = {
            let mut state = self.lock();
            state.is_down = true;
            std::mem::take(&mut state.ends)
        };
        for end in ends.iter().filter_map(Weak::upgrade) {
            // Outside of its lock, as this wakes who waits for it.
            let cut = lock(&end).take();
            drop(cut);
        }
    }

    /// Lets connections be made again.
    pub fn come_up(&self) {
        self.lock().is_down = false;
    }

    /// Lets this thread connect over the network until the guard is dropped.
    pub(crate) fn enter(&self) -> Entered<Self> {
        let place: &'static Place<Self> = &ENTERED;
        Entered::new(place, self.clone())
    }

    /// Returns the network of the world that runs on this thread.
    pub fn current() -> Option<Self> {
        ENTERED.with_borrow(Clone::clone)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Another port in each call.
    fn port(&mut self) -> u16 {
        let port = FIRST_PORT + self.ports;
        self.ports = (self.ports + 1) % (u16::MAX - FIRST_PORT);
        port
    }
}

fn lock(end: &End) -> MutexGuard<'_, Option<DuplexStream>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in a [`Network`] that takes connections, until it is dropped.
pub struct NetworkListener {
    network: Network,
    address: SocketAddr,
    connections: UnboundedReceiver<(NetworkStream, SocketAddr)>,
}

impl NetworkListener {
    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for a connection; returns it with the address of its other end.
    pub async fn accept(&mut self) -> (NetworkStream, SocketAddr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The network has the sender for as long as this listener is there.
            None => std::future::pending().await,
        }
    }
}

impl Drop for NetworkListener {
    fn drop(&mut self) {
        self.network.lock().listeners.remove(&self.address);
    }
}

/// An end of a connection over a [`Network`]. Once the other end is dropped, or the connection is cut, it reads the end of
/// the stream.
#[derive(Debug)]
pub struct NetworkStream(Arc<End>);

impl AsyncRead for NetworkStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *lock(&self.0) {
            Some(stream) => Pin::new(stream).poll_read(cx, into),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for NetworkStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *lock(&self.0) {
            Some(stream) => Pin::new(stream).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *lock(&self.0) {
            Some(stream) => Pin::new(stream).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *lock(&self.0) {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl fmt::Debug for NetworkListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkListener").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn anywhere() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    #[tokio::test]
    async fn ends_are_joined_and_one_that_is_dropped_is_the_end_of_the_other() {
        let network = Network::default();
        let mut listener = network.bind(anywhere()).unwrap();
        let mut near = network.connect(listener.address()).unwrap();
        let (mut far, from) = listener.accept().await;
        assert_ne!(from, listener.address());
        near.write_all(b"hello").await.unwrap();
        drop(near);
        let mut said = String::new();
        far.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello");
        far.write_all(b"you").await.unwrap_err();
    }

    #[tokio::test]
    async fn an_address_has_one_listener_and_refuses_without_one() {
        let network = Network::default();
        let listener = network.bind(anywhere()).unwrap();
        let address = listener.address();
        assert_eq!(network.bind(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(network.connect(address).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        network.bind(address).unwrap();
    }

    #[tokio::test]
    async fn a_network_that_goes_down_cuts_who_waits_and_refuses_until_it_is_up() {
        let network = Network::default();
        let mut listener = network.bind(anywhere()).unwrap();
        let address = listener.address();
        let mut near = network.connect(address).unwrap();
        let waiting = tokio::spawn(async move { near.read(&mut [0]).await });
        let (mut far, _) = listener.accept().await;
        tokio::task::yield_now().await;
        network.go_down();
        assert_eq!(waiting.await.unwrap().unwrap(), 0);
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        far.write_all(b"x").await.unwrap_err();
        network.connect(address).unwrap_err();
        network.come_up();
        network.connect(address).unwrap();
        listener.accept().await;
    }
}
