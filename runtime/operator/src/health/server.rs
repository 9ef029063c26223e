//! A small HTTP server for probes and metrics. Anybody in the cluster may reach it, so it gives nobody much: one request per connection,
//! ten seconds for it, a bounded number of connections.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, header::CONNECTION},
    middleware::map_response,
    response::Response,
    serve::Listener,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};

/// Longest life of a connection.
const LIFETIME: Duration = Duration::from_secs(2);
/// Most connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an address.
    #[error("{flag}: {address:?} is not an address to listen on; give HOST:PORT or :PORT, for example :8080, or 0 for none")]
    Address {
        /// The flag that said so.
        flag: &'static str,
        /// What it said.
        address: String,
    },
    /// The system does not let us.
    #[error("{flag}: cannot listen on {address}: {source}; free the port, choose another (:0 takes any), or give 0 for none")]
    Bind {
        /// The flag that named the address.
        flag: &'static str,
        /// What it said.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    lifetime: Duration,
}

impl Server {
    /// Listens on `address`; none for `0` or nothing. `flag` is named by errors.
    ///
    /// # Errors
    /// The address is not one, or cannot be had.
    pub async fn bind(flag: &'static str, address: &str) -> Result<Option<Self>, Error> {
        if address.is_empty() || address == "0" {
            return Ok(None);
        }
        let wrong = || Error::Address { flag, address: address.to_owned() };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let bound = if host.is_empty() {
            // Both families where there are both.
            match TcpListener::bind(("::", port)).await {
                Ok(listener) => Ok(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                Err(_no_ipv6) => TcpListener::bind(("0.0.0.0", port)).await,
            }
        } else {
            TcpListener::bind(address).await
        };
        let listener = bound.map_err(|source| Error::Bind { flag, address: address.to_owned(), source })?;
        Ok(Some(Self { listener, lifetime: LIFETIME }))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `shutdown`; answers that are under way are finished.
    pub async fn run(self, router: Router, shutdown: impl Future<Output = ()> + Send + 'static) {
        let router = router.layer(map_response(one_request));
        let listener = Bounded { listener: self.listener, places: Arc::new(Semaphore::new(CONNECTIONS)), lifetime: self.lifetime };
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(shutdown).await {
            tracing::error!(%error, "http server ended");
        }
    }

    /// With another longest life of connections.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }
}

/// An idle connection would be cut at the end of its life, perhaps while a request arrives. Nobody keeps one.
async fn one_request(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    lifetime: Duration,
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        (Connection { stream, end: Box::pin(sleep(self.lifetime)), _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends by itself.
struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn check(&mut self, cx: &mut Context<'_>) -> Result<(), io::Error> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Err(error) = self.check(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Err(error) = self.check(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
