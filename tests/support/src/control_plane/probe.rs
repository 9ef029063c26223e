//! Questions to the API server while it starts. Lives on a thread without a runtime of its own.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::GetParams;
use kube::core::Request;
use kube::{Client, Config};

/// An API server that starts may accept a connection and never answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A client with the runtime it needs.
pub(super) struct Probe {
    runtime: tokio::runtime::Runtime,
    client: Option<Client>,
}

impl Probe {
    pub(super) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
        Ok(Self { runtime, client: None })
    }

    /// Asks `/readyz`; an error says why not yet. The client is made anew until one works: the certificate it trusts may have been
    /// half written when it was read.
    pub(super) fn ready(&mut self, config: Result<Config>) -> Result<()> {
        let config = config?;
        let client = self.block_on(async {
            let client = Client::try_from(config)?;
            client.request_text(Request::new("").get("readyz", &GetParams::default())?).await?;
            Ok(client)
        })?;
        self.client = Some(client);
        Ok(())
    }

    /// Runs something with the client that [`ready`](Self::ready) has found to work.
    pub(super) fn with<T, F: Future<Output = Result<T>>>(&self, ask: impl FnOnce(Client) -> F) -> Result<T> {
        let client = self.client.clone().context("the API server has not been found ready")?;
        self.block_on(ask(client))
    }

    fn block_on<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(async { tokio::time::timeout(ANSWER, future).await.context("no answer")? })
    }
}
