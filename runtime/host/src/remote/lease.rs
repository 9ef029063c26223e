//! A tested connection on loan.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Response, Status};

use super::{CallError, Capabilities, Class, Deadlines, Event, Limits, Metadata, Plugin, calls::Call, transport::Borrowed, wire::Wire};

/// A tested connection on loan, and one of the plugin's calls in flight. Give it back by dropping it; several calls may be made with it, one
/// after the other or at once.
pub struct Lease {
    pub(super) plugin: Arc<Plugin>,
    pub(super) borrowed: Borrowed,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Who is at the other end.
    #[must_use]
    pub fn metadata(&self) -> &Arc<Metadata> {
        &self.borrowed.transport().peer.metadata
    }

    /// What it offers; what is not in it must not be called.
    #[must_use]
    pub fn capabilities(&self) -> &Arc<Capabilities> {
        &self.borrowed.transport().peer.capabilities
    }

    pub(super) fn wire(&self) -> Wire {
        self.borrowed.transport().wire.clone()
    }

    pub(super) fn limits(&self) -> Limits {
        self.borrowed.transport().limits
    }

    pub(super) fn deadlines(&self) -> Deadlines {
        self.borrowed.transport().deadlines
    }

    /// Makes a call and tells the pool how it ended.
    pub(super) async fn call<Q, A, F>(
        &self,
        method: &'static str,
        within: Duration,
        message: Q,
        send: impl FnOnce(Request<Q>) -> F,
    ) -> Result<A, CallError>
    where
        Q: prost::Message,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        // Before anything is sent: a message that is cut off midway costs the connection.
        let (size, most) = (message.encoded_len(), self.limits().message);
        if size > most {
            let message = format!("the question has {size} bytes, at most {most} are allowed");
            return Err(CallError { method, class: Class::TooLarge, message });
        }
        let since = Instant::now();
        let outcome = Call { method, within }.ask(message, send).await;
        let failed = outcome.as_ref().err().map(|error| error.class);
        self.plugin.event(Event::Called { method, failed, took: since.elapsed() });
        self.plugin.ended(self.borrowed.transport(), outcome.as_ref().err());
        outcome
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("plugin", &self.plugin.name())
            .field("endpoint", &self.borrowed.transport().endpoint)
            .finish_non_exhaustive()
    }
}
