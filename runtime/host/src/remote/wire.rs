//! One HTTP/2 connection as the service that generated clients call. It never reconnects: when it ends, the pool knows.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use tonic::body::Body;

/// A clone is another sender on the same connection.
#[derive(Clone)]
pub(super) struct Wire {
    sender: SendRequest<Body>,
}

impl Wire {
    pub(super) fn new(sender: SendRequest<Body>) -> Self {
        Self { sender }
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl tower::Service<Request<Body>> for Wire {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.sender.send_request(request))
    }
}

/// Scheme and authority of every request. The connection stands already, so the name only has to be one.
pub(super) fn origin() -> Uri {
    Uri::from_static("https://plugin")
}
