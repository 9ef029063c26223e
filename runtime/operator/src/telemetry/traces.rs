//! Traces over OTLP/HTTP, where an endpoint is configured: a span for each pass, and in it one for gathering, deciding and every write.

use std::time::Duration;

use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, hyper::HyperClient};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use tokio::runtime::Handle;

/// One export may take so long.
const TIMEOUT: Duration = Duration::from_secs(10);
const PATH: &str = "/v1/traces";

/// Why there are no traces.
#[derive(Debug, thiserror::Error)]
#[error("OTLP endpoint {endpoint:?}: {problem}; write for example http://collector:4318")]
pub struct Error {
    /// What was given.
    pub endpoint: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Sends what is still queued when it is shut down.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// An exporter to this collector. `http` and `https` are known; without a path `/v1/traces` is meant. Must be called in a runtime.
    ///
    /// # Errors
    /// The endpoint is no URL of a collector.
    pub fn to(endpoint: &str) -> Result<Self, Error> {
        let wrong = |problem: String| Error { endpoint: endpoint.to_owned(), problem };
        let uri: http::Uri = endpoint.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(wrong("is no http or https URL".into()));
        }
        let url = if uri.path() == "/" { format!("{}{PATH}", endpoint.trim_end_matches('/')) } else { endpoint.to_owned() };
        // The one crypto provider; a second call finds it set.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let roots = HttpsConnectorBuilder::new().with_native_roots().map_err(|error| wrong(format!("no root certificates: {error}")))?;
        let client = HyperClient::new(roots.https_or_http().enable_http1().build(), TIMEOUT, None);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(OnRuntime { handle: Handle::current(), client })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let resource = Resource::builder_empty()
            .with_attributes([
                opentelemetry::KeyValue::new("service.name", "weir"),
                opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    pub(super) fn tracer(&self) -> SdkTracer {
        self.0.tracer("weir")
    }

    /// Sends what is queued; blocks for a few seconds at most.
    pub fn shutdown(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(Duration::from_secs(5)) {
            tracing::warn!(%error, "some traces were not sent");
        }
    }
}

/// The exporter has a thread of its own, without a runtime; connections need one.
#[derive(Debug)]
struct OnRuntime<C> {
    handle: Handle,
    client: C,
}

impl<C: HttpClient + Clone + 'static> HttpClient for OnRuntime<C> {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let sent = self.handle.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_endpoint_that_is_none_is_named_with_an_example() {
        for endpoint in ["", "collector:4318", "grpc://collector", "http://"] {
            let Err(error) = Traces::to(endpoint) else { panic!("{endpoint} was accepted") };
            assert!(error.to_string().contains("http://collector:4318"), "{error}");
        }
        Traces::to("http://localhost:4318").unwrap();
    }
}
