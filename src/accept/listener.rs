//! The listening socket of an entrance: of the system, or in the network of a test's world.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

#[cfg(feature = "testing")]
use crate::network::{Network, NetworkListener, NetworkStream};

/// A listening socket.
pub(crate) enum Listener {
    System(TcpListener),
    #[cfg(feature = "testing")]
    World(NetworkListener),
}

/// A connection that was accepted.
pub(super) enum Entering {
    System(TcpStream),
    #[cfg(feature = "testing")]
    World(NetworkStream),
}

impl Listener {
    /// Listens at an address, in the network of the present world if there is one.
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Self> {
        #[cfg(feature = "testing")]
        if let Some(network) = Network::current() {
            return network.bind(address).map(Self::World);
        }
        TcpListener::bind(address).await.map(Self::System)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(listener) => listener.local_addr(),
            #[cfg(feature = "testing")]
            Self::World(listener) => Ok(listener.address()),
        }
    }

    pub(super) async fn accept(&mut self) -> io::Result<(Entering, SocketAddr)> {
        match self {
            Self::System(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Nagle's algorithm would only delay small answers.
                let _ = stream.set_nodelay(true);
                Ok((Entering::System(stream), peer))
            }
            #[cfg(feature = "testing")]
            Self::World(listener) => {
                let (stream, peer) = listener.accept().await;
                Ok((Entering::World(stream), peer))
            }
        }
    }
}

impl Entering {
    /// Writes as much as takes no time.
    pub(super) fn write_now(&mut self, bytes: &[u8]) {
        match self {
            Self::System(stream) => drop(stream.try_write(bytes)),
            #[cfg(feature = "testing")]
            Self::World(stream) => {
                use std::task::{Context, Waker};

                use tokio::io::AsyncWrite;

                let mut context = Context::from_waker(Waker::noop());
                let _ = std::pin::Pin::new(stream).poll_write(&mut context, bytes);
            }
        }
    }
}
