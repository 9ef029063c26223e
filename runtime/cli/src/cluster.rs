//! What commands that talk to a cluster have in common: flags, a client, patience with an API server that is away for a moment.

use std::{
    future::Future,
    path::PathBuf,
    time::{Duration, Instant},
};

use kube::Client;

use crate::exit::{Exit, Failure};

/// Between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount.
    #[arg(long, env = "WEIR_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Give up after this time.
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = crate::operator::duration)]
    pub(crate) timeout: Duration,
}

/// Runs `work` with a client, on a runtime of its own.
///
/// # Errors
/// There is no cluster, or `work` fails.
pub(crate) fn run<W: Future<Output = anyhow::Result<Exit>>>(flags: &Flags, work: impl FnOnce(Client) -> W) -> anyhow::Result<Exit> {
    ask(flags, |client, _| work(client))
}

/// Runs `work` with a client and the end of its patience, on a runtime of its own.
///
/// # Errors
/// There is no cluster, or `work` fails.
pub(crate) fn ask<T, W: Future<Output = anyhow::Result<T>>>(flags: &Flags, work: impl FnOnce(Client, Deadline) -> W) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let unavailable = |error: weir_operator::Error| Failure { exit: Exit::Unavailable, message: error.to_string() };
        let client = weir_operator::connect(flags.kubeconfig.as_deref()).await.map_err(unavailable)?;
        work(client, Deadline::after(flags.timeout)).await
    })
}

/// The end of a command's patience.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        // A time that no clock can hold is as good as a long one.
        let now = Instant::now();
        Self(now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400)))
    }

    /// Waits a moment; false when there is no time for another try.
    pub(crate) async fn pause(self) -> bool {
        if Instant::now() + PAUSE >= self.0 {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        true
    }

    /// Makes a request until it is answered; a failure that may pass by itself is tried again.
    ///
    /// # Errors
    /// The last failure.
    pub(crate) async fn request<T, R: Future<Output = kube::Result<T>>>(self, mut request: impl FnMut() -> R) -> kube::Result<T> {
        loop {
            match request().await {
                Err(error) if passes(&error) && self.pause().await => {}
                result => return result,
            }
        }
    }
}

/// Whether a failure may pass by itself.
fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        // What is wrong with a request or a configuration stays wrong.
        kube::Error::ProxyProtocolUnsupported { .. }
        | kube::Error::ProxyProtocolDisabled { .. }
        | kube::Error::FromUtf8(_)
        | kube::Error::LinesCodecMaxLineLengthExceeded
        | kube::Error::ReadEvents(_)
        | kube::Error::HttpError(_)
        | kube::Error::SerdeError(_)
        | kube::Error::BuildRequest(_)
        | kube::Error::InferConfig(_)
        | kube::Error::Discovery(_)
        | kube::Error::RustlsTls(_)
        | kube::Error::TlsRequired
        | kube::Error::Auth(_)
        | kube::Error::InferKubeconfig(_) => false,
    }
}

/// The status code of the server's answer, if it is one.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

/// A request failed for good: who asked for what, and what the server said.
pub(crate) fn failed(what: &str, error: &kube::Error) -> Failure {
    let cure = match code(error) {
        Some(401 | 403) => "; grant it, or use a kubeconfig of somebody who may",
        Some(_) => "",
        None => "; see that the API server can be reached from here",
    };
    Failure { exit: Exit::Unavailable, message: format!("{what}: {error}{cure}") }
}
