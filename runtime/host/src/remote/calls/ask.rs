//! One call over one connection.

use std::time::{Duration, Instant};

use tonic::{Request, Response, Status};
use weir_proto::identity::{self as id, identity_client::IdentityClient};

use super::sort;
use crate::remote::{
    CallError, Class,
    wire::{Wire, origin},
};

/// Largest metadata and capabilities, bytes.
const MAX_METADATA: usize = 256 << 10;

/// Limits of a message by direction.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Largest question.
    pub question: usize,
    /// Largest answer.
    pub answer: usize,
}

impl Caps {
    /// For what a plugin says about itself.
    pub(in crate::remote) const METADATA: Self = Self { question: MAX_METADATA, answer: MAX_METADATA };
}

/// A call: which method, how long.
#[derive(Debug, Clone, Copy)]
pub(in crate::remote) struct Call {
    /// `Service/Method`.
    pub(in crate::remote) method: &'static str,
    /// The shorter of the method's own and the caller's.
    pub(in crate::remote) within: Duration,
}

impl Call {
    /// Sends `message` with `send`, tells the plugin the deadline and holds it here too: a plugin need not keep it.
    pub(in crate::remote) async fn ask<Q, A, F>(self, message: Q, send: impl FnOnce(Request<Q>) -> F) -> Result<A, CallError>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut request = Request::new(message);
        request.set_timeout(self.within);
        let since = Instant::now();
        match tokio::time::timeout(self.within, send(request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => {
                let mut error = sort::status(self.method, &status);
                // Both clocks end at once; some servers then reset the stream before they say so.
                if error.class == Class::Connection && since.elapsed() >= self.within {
                    error.class = Class::Deadline;
                }
                Err(error)
            }
            Err(_) => {
                let message = format!("no answer within {} ms", self.within.as_millis());
                Err(CallError { method: self.method, class: Class::Deadline, message })
            }
        }
    }
}

/// A client of the identity service on `wire`.
pub(in crate::remote) fn identity(wire: &Wire) -> IdentityClient<Wire> {
    let caps = Caps::METADATA;
    IdentityClient::with_origin(wire.clone(), origin()).max_decoding_message_size(caps.answer).max_encoding_message_size(caps.question)
}

/// Whether the plugin is ready.
pub(in crate::remote) async fn probe(wire: &Wire, within: Duration) -> Result<bool, CallError> {
    let mut client = identity(wire);
    let call = Call { method: "Identity/Probe", within };
    call.ask(id::ProbeRequest {}, |request| async move { client.probe(request).await }).await.map(|answer| answer.ready)
}
