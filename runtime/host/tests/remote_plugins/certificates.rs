//! Every shape of certificates that plugins are deployed with, and every way in which they are wrong.

use std::{sync::Arc, time::Duration};

use weir_host::remote::{ClientIdentity, PemError, Reason, ServerTrust, State};
use weir_remote_plugin::{Authority, Behavior, Files, Pair, certificates as make};

use crate::support::{Both, NAME, registry, serve, spec, tuning, until, until_reason};

/// A plugin that shows `server` and trusts `clients`; an operator that shows `client` and trusts the Secret's two keys.
struct Case<'a> {
    server: &'a Pair,
    clients: &'a str,
    client: &'a Pair,
    tls_crt: &'a str,
    ca_crt: Option<&'a str>,
}

impl Case<'_> {
    fn files(&self) -> Files {
        Files { cert: self.server.cert.clone(), key: self.server.key.clone(), clients: self.clients.into() }
    }

    async fn works(&self, what: &str) {
        let server = serve(self.files(), Behavior::good(NAME)).await;
        let (registry, _) = registry(tuning());
        registry.replace(vec![spec(&[&server], self.client, self.tls_crt, self.ca_crt)]);
        let plugin = registry.get(NAME).unwrap();
        let lease = plugin.acquire(Duration::from_secs(10)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(lease.metadata().name, NAME, "{what}");
        assert!(until(&plugin, |status| status.state == State::Ready).await.server_not_after.is_some());
    }

    async fn fails(&self, reason: Reason, says: &str) {
        let server = serve(self.files(), Behavior::good(NAME)).await;
        let (registry, _) = registry(tuning());
        registry.replace(vec![spec(&[&server], self.client, self.tls_crt, self.ca_crt)]);
        let plugin = registry.get(NAME).unwrap();
        let status = until_reason(&plugin, reason).await;
        assert_eq!(status.state, State::Configured);
        assert!(status.message.contains(says), "{reason}: {}", status.message);
        let error = plugin.acquire(Duration::from_secs(10)).await.unwrap_err();
        assert_eq!(error.reason(), reason.as_str(), "callers are told at once: {error}");
    }
}

fn self_signed(names: &[&str]) -> Pair {
    make::self_signed(&make::server(names).unwrap()).unwrap()
}

fn client() -> Pair {
    make::self_signed(&make::client().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn shape_a_a_self_signed_leaf_is_its_own_pin() {
    let (server, client) = (self_signed(&["plugin"]), client());
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert, ca_crt: None }.works("A").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shape_b_a_self_signed_authority_is_its_own_pin() {
    let mut params = make::server(&["plugin"]).unwrap();
    params.extended_key_usages.clear();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let (server, client) = (make::self_signed(&params).unwrap(), client());
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert, ca_crt: None }.works("B").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_c_leaves_of_an_authority_are_pinned_or_chained_on_either_side() {
    let authority = Authority::new().unwrap();
    let server = authority.issue(&make::server(&["plugin"]).unwrap()).unwrap();
    let client = authority.issue(&make::client().unwrap()).unwrap();
    let ca = authority.cert.as_str();
    let with = |clients, tls_crt, ca_crt| Case { server: &server, clients, client: &client, tls_crt, ca_crt };
    with(ca, &server.cert, None).works("C: the leaf pinned, the plugin trusts the authority").await;
    with(&client.cert, &server.cert, None).works("C': both leaves pinned").await;
    with(ca, ca, None).works("C'': both trust the authority").await;
    let other = self_signed(&["plugin"]);
    with(ca, &other.cert, Some(ca)).works("ca.crt beside another tls.crt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_of_the_service_is_good() {
    let client = client();
    for name in ["plugin", "plugin.weir-system", "plugin.weir-system.svc", "plugin.weir-system.svc.cluster.local"] {
        let server = self_signed(&[name]);
        Case { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert, ca_crt: None }.works(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_is_refused_pinned_or_not() {
    let client = client();
    let server = self_signed(&["other.example"]);
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert, ca_crt: None }
        .fails(Reason::ServerNameInvalid, "other.example")
        .await;
    let authority = Authority::new().unwrap();
    let server = authority.issue(&make::server(&["plugin.other-namespace.svc"]).unwrap()).unwrap();
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &authority.cert, ca_crt: None }
        .fails(Reason::ServerNameInvalid, "plugin.other-namespace.svc")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_neither_pinned_nor_chained_is_refused() {
    let (server, pinned, client) = (self_signed(&["plugin"]), self_signed(&["plugin"]), client());
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &pinned.cert, ca_crt: None }
        .fails(Reason::ServerNotTrusted, "neither in the server Secret nor issued")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_count_for_pins_and_chains() {
    let (authority, client) = (Authority::new().unwrap(), client());
    for (from, to, says) in [(2020, 2021, "has ended"), (2100, 2101, "has not begun")] {
        let mut params = make::server(&["plugin"]).unwrap();
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
        let pinned = make::self_signed(&params).unwrap();
        Case { server: &pinned, clients: &client.cert, client: &client, tls_crt: &pinned.cert, ca_crt: None }
            .fails(Reason::ServerCertExpired, says)
            .await;
        let chained = authority.issue(&params).unwrap();
        Case { server: &chained, clients: &client.cert, client: &client, tls_crt: &authority.cert, ca_crt: None }
            .fails(Reason::ServerCertExpired, says)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_certificate_is_no_servers() {
    let mut params = make::server(&["plugin"]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let (server, client) = (make::self_signed(&params).unwrap(), client());
    Case { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert, ca_crt: None }
        .fails(Reason::ServerCertUnusable, "serverAuth")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_does_not_take_our_certificate_is_told_as_that() {
    let (server, ours, theirs) = (self_signed(&["plugin"]), client(), client());
    Case { server: &server, clients: &theirs.cert, client: &ours, tls_crt: &server.cert, ca_crt: None }
        .fails(Reason::ClientCertRejected, "does not take the operator's certificate")
        .await;
}

/// The pool always shows one; this is what keeps everybody else out.
#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_certificate_gets_no_answer() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let both = Both::self_signed();
    let server = serve(both.files(), Behavior::good(NAME)).await;
    let mut roots = rustls::RootCertStore::empty();
    let pinned = rustls::pki_types::pem::PemObject::from_pem_slice(both.server.cert.as_bytes()).unwrap();
    roots.add(pinned).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let mut tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect("plugin".try_into().unwrap(), tcp).await.unwrap();
    drop(tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await);
    let error = tls.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
}

#[test]
fn a_malformed_secret_names_its_key_and_never_quotes_it() {
    let (pair, other) = (client(), client());
    let identity = |cert: &str, key: &str| ClientIdentity::parse(cert.as_bytes(), key.as_bytes()).map(|_| ());
    assert_eq!(identity(&pair.cert, &pair.key), Ok(()));
    assert_eq!(identity("", &pair.key), Err(PemError::NoCertificate { field: "tls.crt" }));
    assert_eq!(identity(&pair.cert, "top secret"), Err(PemError::Key));
    assert_eq!(identity(&pair.cert, &other.key), Err(PemError::Mismatch));
    let parsed = ClientIdentity::parse(pair.cert.as_bytes(), pair.key.as_bytes()).unwrap();
    let shown = format!("{parsed:?}");
    assert!(!shown.contains("PRIVATE") && !shown.contains(pair.key.lines().nth(1).unwrap()), "{shown}");
    let trust = |tls_crt: &str, ca_crt: Option<&str>| ServerTrust::parse(tls_crt.as_bytes(), ca_crt.map(str::as_bytes)).map(|_| ());
    assert_eq!(trust(&pair.cert, Some("")), Ok(()), "cert-manager writes an empty ca.crt");
    assert_eq!(trust("rubbish", None), Err(PemError::NoCertificate { field: "tls.crt" }));
    assert_eq!(trust(&pair.cert, Some("rubbish")), Err(PemError::NoCertificate { field: "ca.crt" }));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(trust(broken, None), Err(PemError::Certificate { field: "tls.crt", number: 1 }));
}

/// Who renews first, and whether the other side follows at once or later.
#[tokio::test(flavor = "multi_thread")]
async fn rotation_of_either_side_under_calls_loses_none() {
    let old = Both::self_signed();
    let server = serve(old.files(), Behavior::good(NAME)).await;
    let (registry, _) = registry(tuning());
    registry.replace(vec![spec(&[&server], &old.client, &old.server.cert, None)]);
    let plugin = registry.get(NAME).unwrap();
    until(&plugin, |status| status.state == State::Ready).await;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let calls = tokio::spawn(calls(Arc::clone(&plugin), Arc::clone(&stop)));
    let new = Both::self_signed();
    let pause = || tokio::time::sleep(Duration::from_millis(500));
    // The server's Secret is renewed before the plugin has loaded it, and old connections are gone.
    registry.replace(vec![spec(&[&server], &old.client, &new.server.cert, None)]);
    pause().await;
    server.renew(Files { cert: new.server.cert.clone(), key: new.server.key.clone(), clients: old.client.cert.clone() });
    pause().await;
    // The client's Secret is renewed before the plugin has loaded it.
    let last = spec(&[&server], &new.client, &new.server.cert, None);
    let digest = last.digest();
    registry.replace(vec![last]);
    pause().await;
    server.renew(new.files());
    let status = until(&plugin, |status| status.spec == digest && !status.overlap && status.state == State::Ready).await;
    assert_eq!(status.reason, None);
    pause().await;
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    let (made, lost) = calls.await.unwrap();
    assert!(made > 20, "{made} calls");
    assert_eq!(lost, Vec::<String>::new());
}

/// 50 calls a second until told to stop.
async fn calls(plugin: Arc<weir_host::remote::Plugin>, stop: Arc<std::sync::atomic::AtomicBool>) -> (usize, Vec<String>) {
    let (mut made, mut lost) = (0, Vec::new());
    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
        made += 1;
        match plugin.acquire(Duration::from_secs(5)).await {
            Ok(lease) => {
                if let Err(error) = lease.set_status(b"{}".to_vec(), Duration::from_secs(5)).await {
                    lost.push(error.to_string());
                }
            }
            Err(error) => lost.push(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (made, lost)
}
