//! From an address to a connection that has said who it is.

mod introduce;
mod socket;
mod tap;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;
use tokio_rustls::{TlsConnector, client::TlsStream};

use self::{introduce::introduce, tap::Tap};
use super::{
    Endpoint, Reason, Tuning, Validity,
    breaker::fraction,
    calls::probe,
    setup::Setup,
    tls::{Failure, io_failure},
    transport::{Parts, Peer, Transport},
    wire::Wire,
};

/// Bytes a plugin may have under way to us on one connection and on one stream before we read.
const WINDOW: u32 = 1 << 20;
/// Largest headers of an answer, bytes.
const MAX_HEADERS: u32 = 16 << 10;
/// Bytes of one message that wait to be sent.
const MAX_SEND: usize = 1 << 20;

/// What was learned on the way, for whoever shows it step by step.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    pub(super) tcp: Option<Duration>,
    pub(super) tls: Option<Duration>,
    pub(super) metadata: Option<Duration>,
    pub(super) probe: Option<Duration>,
    pub(super) chain: Vec<CertificateDer<'static>>,
}

/// Connects, and wakes `wake` when the connection ends; with the former certificate of ours if the plugin does not take the new one.
pub(super) async fn connect(
    name: &str,
    endpoint: &Endpoint,
    setup: &Setup,
    tuning: &Tuning,
    wake: &Arc<Notify>,
) -> Result<Transport, Failure> {
    let identities = setup.tls.identities(Instant::now());
    let mut first = None;
    for rank in 0..identities.max(1) {
        match once(Some(name), endpoint, setup, tuning, rank, &mut Trace::default(), wake).await {
            Ok(transport) => return Ok(transport),
            Err(failure) => {
                // A plugin may reset instead of saying so.
                let retry = matches!(failure.reason, Reason::ClientCertRejected | Reason::Unreachable);
                let first = first.get_or_insert(failure);
                if !retry {
                    return Err(first.clone());
                }
            }
        }
    }
    Err(first.unwrap_or_else(|| Failure::new(Reason::TlsFailed, "no client certificate")))
}

/// One try with the identity of this rank. Without a name any plugin will do.
pub(super) async fn once(
    name: Option<&str>,
    endpoint: &Endpoint,
    setup: &Setup,
    tuning: &Tuning,
    rank: usize,
    trace: &mut Trace,
    wake: &Arc<Notify>,
) -> Result<Transport, Failure> {
    let since = Instant::now();
    let tcp = socket::connect(endpoint, tuning.connect).await?;
    trace.tcp = Some(since.elapsed());
    let since = Instant::now();
    let (config, server_name) = setup.tls.config(rank, Instant::now())?;
    let tls = tokio::time::timeout(tuning.connect, TlsConnector::from(config).connect(server_name, tcp)).await;
    let tls = tls.map_err(|_| Failure::new(Reason::TlsFailed, format!("no TLS handshake within {:?}", tuning.connect)))?;
    let tls = tls.map_err(|error| io_failure(&error))?;
    trace.tls = Some(since.elapsed());
    trace.chain = chain(&tls);
    if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(Failure::new(Reason::TlsFailed, "the plugin does not speak HTTP/2 (ALPN `h2`)"));
    }
    let former = rank > 0 || setup.tls.is_former(&trace.chain);
    let (wire, broken, connection) = http2(tls, tuning, Arc::clone(wake)).await?;
    // Whatever fails below closes the connection with the last sender.
    let since = Instant::now();
    let peer = introduce(name, &wire, &setup.deadlines).await.map_err(|failure| cause(&broken, failure))?;
    trace.metadata = Some(since.elapsed());
    let since = Instant::now();
    let ready = probe(&wire, setup.deadlines.probe).await;
    let ready = ready.map_err(|error| cause(&broken, Failure::new(Reason::ProbeFailed, error.to_string())))?;
    trace.probe = Some(since.elapsed());
    let not_after = trace.chain.first().and_then(Validity::of).map(|validity| validity.not_after);
    Ok(Transport::new(Parts {
        endpoint: endpoint.clone(),
        generation: setup.generation,
        former,
        limits: setup.limits,
        deadlines: setup.deadlines,
        wire,
        peer: Peer { metadata: Arc::new(peer.0), capabilities: Arc::new(peer.1), not_after },
        ready,
        connection,
        lifetime: lifetime(tuning, former, not_after),
    }))
}

/// The age limit with jitter, so that what was opened together is not replaced together. Sooner with a former certificate, to move to the new
/// one, and when the plugin's certificate ends.
fn lifetime(tuning: &Tuning, former: bool, not_after: Option<SystemTime>) -> Duration {
    let most = tuning.age.mul_f64(0.8 + 0.2 * fraction());
    let most = if former { most.min(tuning.health) } else { most };
    not_after.and_then(|end| end.duration_since(SystemTime::now()).ok()).map_or(most, |left| most.min(left))
}

/// Why the connection broke says more than that a call on it did.
fn cause(broken: &OnceLock<Failure>, failure: Failure) -> Failure {
    broken.get().cloned().unwrap_or(failure)
}

type Opened = (Wire, Arc<OnceLock<Failure>>, tokio::task::AbortHandle);

async fn http2(tls: TlsStream<tokio::net::TcpStream>, tuning: &Tuning, wake: Arc<Notify>) -> Result<Opened, Failure> {
    let broken = Arc::new(OnceLock::new());
    let io = TokioIo::new(Tap::new(tls, Arc::clone(&broken)));
    // No HTTP/2 pings: the Go servers' default answer to them is GOAWAY. TCP keepalive and the probe do that work.
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW)
        .max_header_list_size(MAX_HEADERS)
        .max_send_buf_size(MAX_SEND);
    let handshake = tokio::time::timeout(tuning.connect, builder.handshake(io)).await;
    let handshake = handshake.map_err(|_| Failure::new(Reason::TlsFailed, format!("no HTTP/2 within {:?}", tuning.connect)))?;
    let (sender, connection) =
        handshake.map_err(|error| cause(&broken, Failure::new(Reason::Unreachable, format!("no HTTP/2: {error}"))))?;
    // Its error reaches every call on it; the tap keeps the cause.
    let task = tokio::spawn(async move {
        drop(connection.await);
        wake.notify_one();
    });
    Ok((Wire::new(sender), broken, task.abort_handle()))
}

fn chain(tls: &TlsStream<tokio::net::TcpStream>) -> Vec<CertificateDer<'static>> {
    tls.get_ref().1.peer_certificates().unwrap_or_default().iter().map(|certificate| certificate.clone().into_owned()).collect()
}
