//! A remote plugin that runs in the test: who it is and whether it is ready can be changed while it runs, and it can be stopped and started.
//!
//! It listens on an address of this machine that is no loopback: an EndpointSlice may not name one.

use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
        version::TLS13,
    },
};
use tonic::{Request, Response, Status, async_trait, service::Routes};
use weir_proto::{
    identity::{
        GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginMetadataRequest, GetPluginMetadataResponse, ProbeRequest,
        ProbeResponse,
        identity_server::{Identity, IdentityServer},
    },
    policy::{
        EnvVar, KonnectEnvAnswer, KonnectEnvRequest, KonnectEnvResponse, SLOT_VERSION, SchemaRequest, SchemaResponse, ValidateRequest,
        ValidateResponse,
        konnect_env_response::Result as Outcome,
        konnect_env_server::{KonnectEnv, KonnectEnvServer},
        settings_server::{Settings, SettingsServer},
        slot_key,
    },
};

/// What it says. Shared with the test, which may change it.
#[derive(Clone)]
pub(crate) struct Says {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) ready: bool,
}

/// A certificate and its key.
pub(crate) struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    /// Self-signed, as cert-manager makes them: no CA.
    pub(crate) fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    pub(crate) fn secret(&self, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name},
            "stringData": {"tls.crt": self.certificate, "tls.key": self.key}
        })
    }
}

/// A plugin.
pub(crate) struct Server {
    pub(crate) says: Arc<Mutex<Says>>,
    pub(crate) server: Pair,
    pub(crate) client: Pair,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    task: Option<JoinHandle<()>>,
}

impl Server {
    /// One that is ready, for a Service of this name.
    pub(crate) async fn start(service: &str, plugin: &str, version: &str) -> Self {
        let says = Says { name: plugin.into(), version: version.into(), ready: true };
        let mut server = Self {
            says: Arc::new(Mutex::new(says)),
            server: Pair::new(service),
            client: Pair::new("weir"),
            address: address(),
            port: 0,
            task: None,
        };
        server.resume().await;
        server
    }

    /// Nobody listens any more, and connections end.
    pub(crate) fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Listens again, at the same port.
    pub(crate) async fn resume(&mut self) {
        let listener = TcpListener::bind((self.address, self.port)).await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(tls(&self.server, &self.client)));
        self.task = Some(tokio::spawn(serve(listener, acceptor, Answers(Arc::clone(&self.says)))));
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().unwrap());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The address that this machine would talk from.
fn address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent: the kernel only chooses a route.
    socket.connect("203.0.113.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

fn tls(server: &Pair, client: &Pair) -> ServerConfig {
    let mut trusted = RootCertStore::empty();
    trusted.add(CertificateDer::from_pem_slice(client.certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), Arc::clone(&provider)).build().unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(server.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(server.key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, answers: Answers) {
    let routes = Routes::new(IdentityServer::new(answers.clone()))
        .add_service(KonnectEnvServer::new(answers.clone()))
        .add_service(SettingsServer::new(answers))
        .prepare();
    // Connections end with the listener.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let (acceptor, routes) = (acceptor.clone(), routes.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let service = hyper_util::service::TowerToHyperService::new(routes);
            let io = hyper_util::rt::TokioIo::new(stream);
            // How it ends is the client's matter.
            let _ = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new()).serve_connection(io, service).await;
        });
    }
}

#[derive(Clone)]
struct Answers(Arc<Mutex<Says>>);

impl Answers {
    fn says(&self) -> Says {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Identity for Answers {
    async fn get_plugin_metadata(&self, _: Request<GetPluginMetadataRequest>) -> Result<Response<GetPluginMetadataResponse>, Status> {
        let Says { name, version, .. } = self.says();
        let manifest = BTreeMap::from([(slot_key("konnect-env"), SLOT_VERSION.to_owned())]);
        Ok(Response::new(GetPluginMetadataResponse { name, version, manifest, ..GetPluginMetadataResponse::default() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        Ok(Response::new(GetPluginCapabilitiesResponse::default()))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: self.says().ready }))
    }
}

#[async_trait]
impl KonnectEnv for Answers {
    /// Says which version answered.
    async fn evaluate(&self, _: Request<KonnectEnvRequest>) -> Result<Response<KonnectEnvResponse>, Status> {
        let env = vec![EnvVar { name: "REMOTE_VERSION".into(), value: self.says().version }];
        let answer = KonnectEnvAnswer { env, ..KonnectEnvAnswer::default() };
        Ok(Response::new(KonnectEnvResponse { result: Some(Outcome::Answer(answer)) }))
    }
}

#[async_trait]
impl Settings for Answers {
    async fn schema(&self, _: Request<SchemaRequest>) -> Result<Response<SchemaResponse>, Status> {
        Ok(Response::new(SchemaResponse::default()))
    }

    async fn validate(&self, _: Request<ValidateRequest>) -> Result<Response<ValidateResponse>, Status> {
        Ok(Response::new(ValidateResponse::default()))
    }
}
