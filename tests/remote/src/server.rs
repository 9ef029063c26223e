//! A socket with the plugin behind it.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::transport::server::Connected;
use weir_proto::{
    identity::identity_server::IdentityServer,
    lifecycle::operator_lifecycle_server::OperatorLifecycleServer,
    operator::operator_server::OperatorServer,
    policy::{
        conflict_resolution_server::ConflictResolutionServer, konnect_env_server::KonnectEnvServer,
        plugin_packaging_server::PluginPackagingServer, settings_server::SettingsServer,
    },
    reconciler::reconciler_hooks_server::ReconcilerHooksServer,
};

use crate::{
    Behavior, Handle,
    tls::{Current, Files},
};

/// Largest message that the plugin takes, bytes: the default of the Go servers.
const MESSAGE: usize = 4 << 20;

/// How a plugin starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 picks one.
    pub listen: SocketAddr,
    /// Its certificates.
    pub files: Files,
    /// What it does.
    pub behavior: Behavior,
}

/// A running plugin. It ends when dropped, with its connections cut, as when its process is killed.
pub struct Server {
    address: SocketAddr,
    handle: Handle,
    files: Current,
    connections: Arc<AtomicUsize>,
    /// Its own, so that all of it ends at once; tonic serves each connection in a task of its own.
    runtime: Option<Runtime>,
}

impl Server {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what it does.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// New certificates, from the next handshake on.
    pub fn renew(&self, files: Files) {
        self.files.replace(files);
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts a plugin on a runtime of its own. An address that a killed one leaves behind is waited for.
///
/// # Errors
/// When it cannot listen.
pub async fn start(config: Config) -> anyhow::Result<Server> {
    let Config { listen, files, behavior } = config;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.spawn(bind(listen)).await??;
    let address = listener.local_addr()?;
    let (handle, files, connections) = (Handle::new(behavior), Current::new(files), Arc::default());
    runtime.spawn(accept(listener, handle.clone(), files.clone(), Arc::clone(&connections)));
    Ok(Server { address, handle, files, connections, runtime: Some(runtime) })
}

async fn bind(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let began = Instant::now();
    loop {
        match TcpListener::bind(listen).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && began.elapsed() < Duration::from_secs(5) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outcome => return outcome,
        }
    }
}

async fn accept(listener: TcpListener, handle: Handle, files: Current, connections: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let (handle, files) = (handle.clone(), files.clone());
        tokio::spawn(async move {
            if let Err(error) = serve(stream, handle, files).await {
                eprintln!("plugin: {error:#}");
            }
        });
    }
}

/// One connection, until it ends.
async fn serve(stream: TcpStream, handle: Handle, files: Current) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let tls = TlsAcceptor::from(Arc::new(files.config()?)).accept(stream).await?;
    macro_rules! capped {
        ($server:ident) => {
            $server::new(handle.clone()).max_decoding_message_size(MESSAGE).max_encoding_message_size(64 << 20)
        };
    }
    let incoming = futures::stream::once(async move { Ok::<_, std::io::Error>(Stream(tls)) });
    tonic::transport::Server::builder()
        .add_service(capped!(IdentityServer))
        .add_service(capped!(OperatorServer))
        .add_service(capped!(OperatorLifecycleServer))
        .add_service(capped!(ReconcilerHooksServer))
        .add_service(capped!(SettingsServer))
        .add_service(capped!(KonnectEnvServer))
        .add_service(capped!(ConflictResolutionServer))
        .add_service(capped!(PluginPackagingServer))
        .serve_with_incoming(incoming)
        .await?;
    Ok(())
}

/// A connection as tonic takes it.
struct Stream(TlsStream<TcpStream>);

impl Connected for Stream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
