//! A generated client on one HTTP/2 connection over mutual TLS, and nothing else: what a call costs without a pool.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, Uri};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tonic::body::Body;
use weir_proto::policy::konnect_env_client::KonnectEnvClient;
use weir_remote_plugin::{Pair, Server};

/// The connection as a service.
#[derive(Clone)]
pub(crate) struct Connection(SendRequest<Body>);

impl tower::Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Connects to a plugin that shows `server`, as `client`.
pub(crate) async fn connect(plugin: &Server, server: &Pair, client: &Pair) -> KonnectEnvClient<Connection> {
    let certificate = |pair: &Pair| CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate(server)).unwrap();
    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut config = config.with_root_certificates(roots).with_client_auth_cert(vec![certificate(client)], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(plugin.address()).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect("plugin".try_into().unwrap(), tcp).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(tls)).await.unwrap();
    tokio::spawn(connection);
    KonnectEnvClient::with_origin(Connection(sender), Uri::from_static("https://plugin"))
}
