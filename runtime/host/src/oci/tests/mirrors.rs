use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};

use super::{
    registry::{Asked, IMAGE, Reply, Server, Shelf, settings, status, wasm},
    tarball::plugin,
};
use crate::oci::{
    Artifact, Credentials, CredentialsError, DockerConfig, Error, Limits, Puller, PullerError, Reference, Registries, Rule, Secret,
    Timeouts, docker_config,
};

fn shelf() -> Shelf {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    shelf
}

async fn honest(shelf: Shelf) -> Server {
    Server::start(shelf, |_, _| None).await
}

fn rule(prefix: impl ToString, mirrors: &[String]) -> Rule {
    Rule { prefix: prefix.to_string(), mirrors: mirrors.to_vec(), ..Rule::default() }
}

fn with(rules: Vec<Rule>) -> Puller {
    Puller::new(Registries { rules, ..settings() }).unwrap()
}

async fn pull(puller: &Puller, reference: &Reference) -> Result<Artifact, Error> {
    puller.pull(reference, &Credentials::Anonymous, &Limits::PLUGIN).await
}

fn basic() -> Credentials {
    Credentials::Basic { username: "user".into(), password: Secret::new("pass") }
}

/// Wants `user:pass`.
fn guarded(asked: &Asked, _: usize) -> Option<Reply> {
    let challenge = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
    (asked.authorization.as_deref() != Some("Basic dXNlcjpwYXNz")).then(|| Reply::Full(401, challenge, Vec::new()))
}

#[tokio::test]
async fn a_mirror_stands_for_a_prefix() {
    let origin = honest(Shelf::default()).await;
    let mirror = honest(shelf().moved("proxy/hub/y")).await;
    let location = format!("{}/proxy/hub", mirror.address);
    let puller = with(vec![rule(origin.address, &["127.0.0.1:1/never".to_owned()]), rule(format!("{}/x/", origin.address), &[location])]);
    let artifact = pull(&puller, &origin.reference(":1")).await.unwrap();
    assert_eq!(artifact.files.len(), 2);
    // People see what they asked for.
    assert_eq!(artifact.reference, format!("{}/x/y:1", origin.address));
    assert!(origin.asked().is_empty());
    assert_eq!(puller.resolve(&origin.reference(":1"), &Credentials::Anonymous).await.unwrap().digest, artifact.digest);
    let pinned = origin.reference(":other").with_digest(&artifact.digest).unwrap();
    assert_eq!(pull(&puller, &pinned).await.unwrap().digest, artifact.digest);
    assert!(mirror.asked().iter().all(|asked| asked.path == "/v2/" || asked.path.starts_with("/v2/proxy/hub/y/")));
    // A prefix ends at a slash.
    let other = Reference::parse(&format!("{}/xx/y:1", origin.address)).unwrap();
    assert!(matches!(pull(&puller, &other).await, Err(Error::Everywhere { .. })));
}

#[tokio::test]
async fn the_next_place_is_asked() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let origin = honest(shelf()).await;
    let missing = honest(Shelf::default()).await;
    let down = Server::start(shelf(), |_, _| Some(status(503, ""))).await;
    let denied = Server::start(shelf(), |asked, _| asked.path.contains("/manifests/").then(|| status(403, ""))).await;
    let page = Server::start(shelf(), |asked, _| asked.path.contains("/manifests/").then(|| status(200, "<html>"))).await;
    // It has the manifest only.
    let half = Server::start(shelf(), |asked, _| asked.path.contains("/blobs/").then(|| status(404, ""))).await;
    let corrupt = Server::start(shelf(), |asked, _| asked.path.contains("/blobs/").then(|| Reply::Cut(vec![1; 64]))).await;
    let places = [missing.address, down.address, denied.address, page.address, half.address, corrupt.address, closed];
    let mirrors: Vec<String> = places.iter().map(ToString::to_string).collect();
    let artifact = pull(&with(vec![rule(origin.address, &mirrors)]), &origin.reference(":1")).await.unwrap();
    assert_eq!(artifact.files.len(), 2);
    // Each mirror gets one try.
    assert_eq!((down.asked().len(), half.count("/blobs/")), (1, 1));
    // Without the registry itself everything that was tried is told.
    let only = Rule { mirror_only: true, ..rule(origin.address, &mirrors[..2]) };
    let error = pull(&with(vec![only]), &origin.reference(":1")).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(&error, Error::Everywhere { mirrors, .. } if mirrors.len() == 1) && error.transient(), "{error}");
    assert!(text.contains("answers 503") && text.contains("; before that") && text.contains("does not exist"), "{text}");
}

#[tokio::test]
async fn content_that_is_wrong_is_wrong_everywhere() {
    let mut broken = Shelf::default();
    broken.image("1", &[b"no archive".to_vec()]);
    let (origin, mirror) = (honest(shelf()).await, honest(broken).await);
    let puller = with(vec![rule(origin.address, &[mirror.address.to_string()])]);
    let error = pull(&puller, &origin.reference(":1")).await.unwrap_err();
    assert!(matches!(error, Error::Layer { .. }) && origin.asked().is_empty(), "{error}");
}

#[tokio::test]
async fn digests_are_verified_wherever_content_comes_from() {
    let mut other = Shelf::default();
    let evil = other.image("1", &[plugin().file("evil.lua", "").gzip()]);
    let origin = honest(shelf()).await;
    let good = pull(&with(Vec::new()), &origin.reference(":1")).await.unwrap().digest;
    let mirror = Server::start(other.clone(), move |asked, _| {
        // Whatever is asked for, it gives the other manifest.
        let path = format!("/v2/x/y/manifests/{}", evil["digest"].as_str().unwrap());
        (asked.path.contains("/manifests/") && asked.path != path).then(|| Reply::Full(307, vec![("location", path)], Vec::new()))
    })
    .await;
    let puller = with(vec![rule(origin.address, &[mirror.address.to_string()])]);
    let artifact = pull(&puller, &origin.reference("").with_digest(&good).unwrap()).await.unwrap();
    assert_eq!((artifact.digest, artifact.files.len()), (good.clone(), 2));
    assert!(mirror.count("/manifests/") > 0);
    let only = with(vec![Rule { mirror_only: true, ..rule(origin.address, &[mirror.address.to_string()]) }]);
    let error = pull(&only, &origin.reference("").with_digest(&good).unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
}

#[tokio::test]
async fn credentials_are_not_for_mirrors() {
    let origin = Server::start(shelf(), guarded).await;
    let mirror = Server::start(shelf(), guarded).await;
    let puller = with(vec![rule(origin.address, &[mirror.address.to_string()])]);
    puller.pull(&origin.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    assert!(mirror.asked().iter().all(|asked| asked.authorization.is_none()), "{:?}", mirror.asked());
    assert!(origin.asked().iter().any(|asked| asked.authorization.is_some()));
    // A docker config with an entry for the mirror.
    let config = format!(r#"{{"auths": {{"{}": {{"username": "user", "password": "pass"}}}}}}"#, mirror.address);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let knowing = puller.with_mirror_credentials(move |place| {
        log.lock().unwrap().push(place.to_string());
        docker_config(DockerConfig::Json, config.as_bytes(), place)
    });
    let before = origin.asked().len();
    knowing.pull(&origin.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap();
    assert_eq!((origin.asked().len(), seen.lock().unwrap().as_slice()), (before, &[format!("{}/x/y:1", mirror.address)][..]));
    // An entry that cannot be read is told; the registry itself is asked.
    let broken = puller.with_mirror_credentials(|_| Err(CredentialsError::NotJson { line: 3 }));
    broken.pull(&origin.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    let error = broken.pull(&origin.reference(":2"), &basic(), &Limits::PLUGIN).await.unwrap_err();
    assert!(error.to_string().contains(&format!("mirror {}/x/y: the docker config is no JSON object", mirror.address)), "{error}");
}

#[tokio::test]
async fn another_repository_of_the_same_host_gets_the_credentials() {
    let both = Server::start(shelf().moved("mirror/y"), guarded).await;
    let puller = with(vec![rule(format!("{}/x", both.address), &[format!("{}/mirror", both.address)])]);
    puller.pull(&both.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    assert_eq!(both.count("/v2/x/"), 0);
}

#[tokio::test]
async fn a_mirror_that_hangs_has_its_share_of_the_time() {
    let origin = honest(shelf()).await;
    let hangs = Server::start(shelf(), |asked, _| asked.path.contains("/manifests/").then_some(Reply::Silent)).await;
    let timeouts = Timeouts { total: Duration::from_secs(8), ..settings().timeouts };
    let rules = vec![rule(origin.address, &[hangs.address.to_string()])];
    let puller = Puller::new(Registries { rules, timeouts, ..settings() }).unwrap();
    let start = std::time::Instant::now();
    assert!(pull(&puller, &origin.reference(":1")).await.is_ok());
    assert!(start.elapsed() >= Duration::from_secs(3) && start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[tokio::test]
async fn components_and_tags_too() {
    let mut held = Shelf::default();
    let layer = held.blob("application/wasm", &wasm("x"));
    held.manifest("1", IMAGE, &serde_json::json!({"schemaVersion": 2, "layers": [layer]}));
    let origin = honest(Shelf::default()).await;
    let mirror = Server::start(held, |asked, _| asked.path.contains("/tags/").then(|| status(200, r#"{"tags": ["1"]}"#))).await;
    let puller = with(vec![rule(origin.address, &[mirror.address.to_string()])]);
    let component = puller.component(&origin.reference(":1"), &Credentials::Anonymous, 1 << 10).await.unwrap();
    assert_eq!((component.bytes, component.reference), (wasm("x"), origin.reference(":1").to_string()));
    assert_eq!(puller.tags(&origin.reference(""), &Credentials::Anonymous).await.unwrap(), ["1"]);
    assert!(origin.asked().is_empty());
}

#[tokio::test]
async fn what_may_be_asked_for_is_not_about_mirrors() {
    let mirror = honest(shelf()).await;
    let rules = vec![Rule { mirror_only: true, ..rule("registry.invalid", &[mirror.address.to_string()]) }];
    let puller = Puller::new(Registries { rules, allowed: vec!["registry.invalid/x".into()], ..settings() }).unwrap();
    assert!(pull(&puller, &Reference::parse("registry.invalid/x/y:1").unwrap()).await.is_ok());
    assert!(matches!(pull(&puller, &mirror.reference(":1")).await, Err(Error::NotAllowed { .. })));
    // A mirror without a path cannot be a whole repository.
    let rules = vec![Rule { mirror_only: true, ..rule("registry.invalid/x/y", &[mirror.address.to_string()]) }];
    let error = pull(&with(rules), &Reference::parse("registry.invalid/x/y:1").unwrap()).await.unwrap_err();
    assert!(matches!(&error, Error::Mirror { .. }) && error.to_string().ends_with("give the mirror a path"), "{error}");
}

/// A registry that has nothing, behind TLS with a certificate of a CA that nobody knows: its port, and the CA.
fn tls() -> (u16, Vec<u8>) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap());
            // A client that does not trust the certificate is gone here.
            if tls.read(&mut [0; 4096]).is_ok() {
                drop(tls.write_all(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                tls.conn.send_close_notify();
                drop(tls.flush());
            }
        }
    });
    (port, own.cert.pem().into_bytes())
}

#[tokio::test]
async fn a_ca_is_for_its_prefix() {
    let (port, pem) = tls();
    let place = format!("localhost:{port}");
    let puller = |rules: Vec<Rule>| Puller::new(Registries { rules, loopback_tls: vec![place.clone()], ..settings() }).unwrap();
    let trusting = puller(vec![Rule { ca: Some(pem), ..rule(format!("{place}/a"), &[]) }]);
    let ask = async |repository: &str| pull(&trusting, &Reference::parse(&format!("{place}/{repository}:1")).unwrap()).await.unwrap_err();
    assert!(matches!(ask("a/b").await, Error::NotFound { .. }));
    let other = ask("b").await;
    assert!(matches!(&other, Error::Tls { cure, .. } if cure.contains("CA")), "{other}");
}

#[test]
fn rules_are_read_strictly() {
    let wrong = |rules: Vec<Rule>| {
        let error = Puller::new(Registries { rules, ..settings() }).unwrap_err();
        let PullerError::Rule { prefix, problem } = error else { panic!("{error}") };
        format!("{prefix}: {problem}")
    };
    let mirror = |text: &str| vec![text.to_owned()];
    assert!(wrong(vec![rule("library", &[])]).contains("is no registry"));
    assert!(wrong(vec![rule("ghcr.io/A", &[])]).contains("upper-case"));
    assert!(wrong(vec![rule("ghcr.io/a:1", &[])]).contains("cannot be a part of a repository"));
    assert!(wrong(vec![rule("ghcr.io", &[]), rule("GHCR.io/", &[])]).contains("there are two of them"));
    assert!(wrong(vec![rule("ghcr.io", &mirror("mirror/hub"))]).contains("its mirror \"mirror/hub\""));
    assert!(wrong(vec![rule("ghcr.io", &vec!["m.corp".to_owned(); 17])]).contains("at most 16"));
    assert!(wrong(vec![Rule { mirror_only: true, ..rule("ghcr.io", &[]) }]).contains("name one"));
    assert!(wrong(vec![Rule { ca: Some(b"x".to_vec()), ..rule("ghcr.io", &[]) }]).contains("no certificate in PEM form"));
    assert!(wrong((0..257).map(|n| rule(format!("r{n}.corp"), &[])).collect()).contains("more than 256"));
    // Docker Hub has several names.
    assert!(wrong(vec![rule("docker.io", &[]), rule("index.docker.io", &[])]).contains("two of them"));
}
