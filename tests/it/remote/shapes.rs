//! Every shape of certificates that plugins are deployed with, and every way in which one is wrong, on the real server stack.

use std::{io::Write, net::TcpStream, path::Path, sync::Arc, time::Duration};

use weir_host::remote::{self as pool, ClientIdentity, Deadlines, Endpoint, Examination, Limits, Reason, ServerTrust, Spec, service_names};
use weir_remote_plugin::{Authority, Files, Pair, certificates as make};

use super::plugin::{NAME, Plugin};

/// Longest wait for what a client without a certificate is told.
const LONG: Duration = Duration::from_secs(30);

/// A plugin that shows `server` and trusts `clients`; an operator that shows `client` and trusts `tls_crt`.
pub(super) struct Shape<'a> {
    pub(super) server: &'a Pair,
    pub(super) clients: &'a str,
    pub(super) client: &'a Pair,
    pub(super) tls_crt: &'a str,
}

impl Shape<'_> {
    pub(super) fn start(&self, program: &Path) -> Plugin {
        let files = Files { cert: self.server.cert.clone(), key: self.server.key.clone(), clients: self.clients.into() };
        Plugin::start(program, &files)
    }

    async fn look(&self, program: &Path) -> Examination {
        let plugin = self.start(program);
        pool::examine(spec(&plugin, self.client, self.tls_crt), 3).await
    }

    async fn works(&self, program: &Path, what: &str) {
        let found = self.look(program).await;
        assert_eq!(found.failure, None, "{what}");
        assert_eq!(found.who.unwrap().name, NAME, "{what}");
        assert_eq!(found.offers.unwrap().services.len(), 3, "{what}: the database's is passed over");
    }

    async fn fails(&self, program: &Path, what: &str, wanted: Reason) {
        let (reason, message) = self.look(program).await.failure.unwrap_or_else(|| panic!("{what} works"));
        assert_eq!(reason, wanted, "{what}: {message}");
    }
}

pub(super) fn spec(plugin: &Plugin, client: &Pair, tls_crt: &str) -> Spec {
    Spec {
        name: NAME.into(),
        endpoints: vec![Endpoint { host: plugin.address.ip().to_string(), port: plugin.address.port() }],
        server_names: service_names("plugin", "weir-system", "cluster.local"),
        identity: Arc::new(ClientIdentity::parse(client.cert.as_bytes(), client.key.as_bytes()).unwrap()),
        trust: Arc::new(ServerTrust::parse(tls_crt.as_bytes(), None).unwrap()),
        limits: Limits::default(),
        deadlines: Deadlines::default(),
    }
}

pub(super) fn self_signed(name: &str) -> Pair {
    make::self_signed(&make::server(&[name]).unwrap()).unwrap()
}

pub(super) fn operator() -> Pair {
    make::self_signed(&make::client().unwrap()).unwrap()
}

/// Every shape that plugins are deployed with works; every way in which one is wrong has its own reason.
pub(super) async fn certificates(program: &Path) {
    let (server, client) = (self_signed("plugin"), operator());
    let pinned = |server, tls_crt| Shape { server, clients: &client.cert, client: &client, tls_crt };
    pinned(&server, &server.cert).works(program, "A, self-signed leaves").await;
    let mut params = make::server(&["plugin"]).unwrap();
    params.extended_key_usages.clear();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let as_authority = make::self_signed(&params).unwrap();
    pinned(&as_authority, &as_authority.cert).works(program, "B, a self-signed authority").await;
    let authority = Authority::new().unwrap();
    let (leaf, issued) =
        (authority.issue(&make::server(&["plugin"]).unwrap()).unwrap(), authority.issue(&make::client().unwrap()).unwrap());
    let of_authority = |clients, tls_crt| Shape { server: &leaf, clients, client: &issued, tls_crt };
    of_authority(&authority.cert, &leaf.cert).works(program, "C, its leaf is pinned and the plugin trusts the authority").await;
    of_authority(&issued.cert, &leaf.cert).works(program, "C', both leaves are pinned").await;
    of_authority(&authority.cert, &authority.cert).works(program, "C'', both trust the authority").await;

    let elsewhere = self_signed("elsewhere");
    pinned(&elsewhere, &elsewhere.cert).fails(program, "a wrong name", Reason::ServerNameInvalid).await;
    let other = self_signed("plugin");
    pinned(&server, &other.cert).fails(program, "a wrong pin", Reason::ServerNotTrusted).await;
    let mut params = make::server(&["plugin"]).unwrap();
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    let ended = make::self_signed(&params).unwrap();
    pinned(&ended, &ended.cert).fails(program, "an ended certificate", Reason::ServerCertExpired).await;
    let stranger = operator();
    let strange = Shape { server: &server, clients: &stranger.cert, client: &client, tls_crt: &server.cert };
    strange.fails(program, "a client certificate that is not trusted", Reason::ClientCertRejected).await;
    let plugin = pinned(&server, &server.cert).start(program);
    let told = without_certificate(&plugin, &server);
    assert!(told.contains("CertificateRequired"), "who shows no certificate gets no answer: {told}");
}

/// What a client without a certificate is told. The alert comes after the handshake, with the first read.
fn without_certificate(plugin: &Plugin, server: &Pair) -> String {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.cert.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut tls = rustls::ClientConnection::new(Arc::new(config), "plugin".try_into().unwrap()).unwrap();
    let mut tcp = TcpStream::connect(plugin.address).unwrap();
    tcp.set_read_timeout(Some(LONG)).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    let written = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").and_then(|()| stream.flush());
    let read = std::io::copy(&mut stream, &mut std::io::sink());
    format!("{written:?} {read:?}")
}
