use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::json;

use super::{
    registry::{Asked, IMAGE, LAYER, Reply, Server, Shelf, puller, settings, status},
    tarball::plugin,
};
use crate::oci::{Artifact, Credentials, DialPolicy, Error, Limits, Puller, Range, Refused, Registries, Retries, Timeouts, retry};

fn shelf() -> Shelf {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    shelf
}

async fn pull_with(
    puller: &Puller,
    hook: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static,
) -> (Result<Artifact, Error>, Server) {
    let server = Server::start(shelf(), hook).await;
    let result = puller.pull(&server.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await;
    (result, server)
}

/// What a pull says when every request whose path contains `part` is answered by `reply`.
async fn fault(part: &'static str, reply: Reply) -> (Error, Server) {
    let (result, server) = pull_with(&puller(), move |asked, _| asked.path.contains(part).then(|| reply.clone())).await;
    (result.unwrap_err(), server)
}

fn too_many(seconds: &str) -> Reply {
    let body = r#"{"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down", "detail": 7}]}"#;
    Reply::Full(429, vec![("retry-after", seconds.to_owned())], body.as_bytes().to_vec())
}

#[tokio::test]
async fn one_refusal_by_load_is_waited_out() {
    let start = Instant::now();
    let (result, server) =
        pull_with(&puller(), |asked, before| (asked.path.contains("/manifests/") && before == 0).then(|| too_many("1"))).await;
    assert_eq!(result.unwrap().files.len(), 2);
    assert!(start.elapsed() >= Duration::from_secs(1) && server.count("/manifests/") == 2);
}

#[tokio::test]
async fn long_waits_are_left_to_the_caller() {
    let (error, server) = fault("/manifests/", too_many("120")).await;
    assert!(error.transient() && error.retry_after() == Some(Duration::from_secs(120)), "{error}");
    assert_eq!(error.to_string(), format!("{0} answers 429 to {0}/x/y:1 (\"slow down\")", server.address));
    assert_eq!(server.count("/manifests/"), 1);
}

#[tokio::test]
async fn three_times_unavailable() {
    let (error, server) = fault("/blobs/", status(503, "<html>gateway</html>")).await;
    assert!(matches!(&error, Error::Status { status: 503, said, .. } if said == "an HTML page") && error.transient(), "{error}");
    assert_eq!(server.count("/blobs/"), 3);
    let (error, server) = fault("/v2/", status(502, "")).await;
    assert!(error.transient() && server.asked().len() == 3, "{error}");
}

#[tokio::test]
async fn statuses() {
    let (error, _) = fault("/manifests/", status(403, r#"{"errors": ["denied by policy"]}"#)).await;
    assert!(matches!(&error, Error::Denied { sent: false, said, .. } if said == "denied by policy"), "{error}");
    let (error, server) = fault("/manifests/", status(404, "")).await;
    assert_eq!(error.to_string(), format!("{}/x/y:1 does not exist; check repository and tag", server.address));
    let (error, _) = fault("/manifests/", status(400, r#"{"error": "x", "message": 1}"#)).await;
    assert!(matches!(error, Error::Status { status: 400, .. }) && !error.transient(), "{error}");
    let (error, _) = fault("/v2/", Reply::Full(401, vec![("www-authenticate", "Negotiate".to_owned())], Vec::new())).await;
    assert!(matches!(error, Error::Challenge { .. }), "{error}");
}

#[tokio::test]
async fn bodies() {
    let (error, server) = fault("/blobs/", Reply::Cut(plugin().gzip())).await;
    assert!(error.transient() && server.count("/blobs/") == 3, "{error}");
    let bytes = plugin().gzip();
    let (error, _) = fault("/blobs/", Reply::Full(200, Vec::new(), vec![0; bytes.len()])).await;
    assert!(matches!(error, Error::Digest { .. }) && !error.transient(), "{error}");
    let (error, _) = fault("/blobs/", Reply::Full(200, Vec::new(), vec![0; bytes.len() + 1])).await;
    assert!(matches!(error, Error::TooLarge { declared: true, .. }), "{error}");
    let (error, _) = fault("/blobs/", Reply::Full(200, Vec::new(), vec![0; bytes.len() - 1])).await;
    assert!(matches!(error, Error::TooShort { .. }), "{error}");
    let (error, _) = fault("/blobs/", Reply::Endless).await;
    assert!(matches!(error, Error::TooLarge { declared: true, .. }), "{error}");
    let (error, _) = fault("/manifests/", Reply::Endless).await;
    assert!(matches!(error, Error::TooLarge { declared: false, most: 4_194_304, .. }), "{error}");
    let (error, _) = fault("/v2/", Reply::Endless).await;
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn manifests() {
    let page = Reply::Full(200, vec![("content-type", "text/html".to_owned())], b" <html>log in</html>".to_vec());
    let (error, server) = fault("/manifests/", page).await;
    assert_eq!(
        error.to_string(),
        format!(
            "{0} answers {0}/x/y:1 with text/html, so it is no registry (or a proxy or login page is in between); check host and port",
            server.address
        )
    );
    let lie = vec![("docker-content-digest", format!("sha256:{}", "0".repeat(64)))];
    let (error, _) = fault("/manifests/", Reply::Full(200, lie, b"{\"layers\": []}".to_vec())).await;
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    let server = Server::start(shelf(), |asked, _| asked.path.contains("/manifests/").then(|| status(200, "{\"layers\": []}"))).await;
    let pinned = server.reference(&format!("@sha256:{}", "1".repeat(64)));
    let error = puller().pull(&pinned, &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
}

#[tokio::test]
async fn descriptors_that_lie() {
    let mut shelf = Shelf::default();
    let mut layer = shelf.blob(LAYER, &plugin().gzip());
    layer["size"] = json!(1_u64 << 50);
    shelf.manifest("1", IMAGE, &json!({"schemaVersion": 2, "layers": [layer]}));
    let server = Server::start(shelf, |_, _| None).await;
    let error = puller().pull(&server.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap_err();
    assert!(error.to_string().contains("layer 1 has 1073741824 MiB, at most 8 MiB are allowed"), "{error}");
    assert_eq!(server.count("/blobs/"), 0);
}

#[tokio::test]
async fn redirects() {
    let to = |location: &str| Reply::Full(307, vec![("location", location.to_owned())], Vec::new());
    for (location, expected) in
        [("http://169.254.169.254/latest/meta-data/", Range::LinkLocal), ("http://[fd00:ec2::254]/", Range::Metadata)]
    {
        // Plain HTTP is refused before; here it is allowed, so that the address is what stops it.
        let insecure = vec!["169.254.169.254".to_owned(), "[fd00:ec2::254]".to_owned()];
        let puller = Puller::new(Registries { insecure, ..settings() }).unwrap();
        let reply = to(location);
        let (result, _) = pull_with(&puller, move |asked, _| asked.path.contains("/blobs/").then(|| reply.clone())).await;
        assert!(matches!(&result, Err(Error::Dial(Refused { range, .. })) if *range == expected), "{result:?}");
    }
    let (error, _) = fault("/blobs/", to("http://registry.example.com/x")).await;
    assert!(matches!(error, Error::Downgrade { .. }), "{error}");
    let (error, _) = fault("/blobs/", to("file:///etc/passwd")).await;
    assert!(matches!(error, Error::Downgrade { .. }), "{error}");
    let (error, server) = fault("/blobs/", to("/v2/x/y/blobs/again")).await;
    assert!(matches!(error, Error::Redirect { problem: "too often", .. }) && server.count("/blobs/") == 6, "{error}");
}

#[tokio::test]
async fn credentials_stay_with_the_first_host() {
    let store = Server::start(shelf(), |_, _| None).await;
    let place = format!("http://{}", store.address);
    let server = Server::start(shelf(), move |asked, _| {
        if asked.authorization.is_none() {
            return Some(Reply::Full(401, vec![("www-authenticate", "Basic realm=x".to_owned())], Vec::new()));
        }
        asked
            .path
            .contains("/blobs/")
            .then(|| Reply::Full(302, vec![("location", format!("{place}{}?signature=s", asked.path))], Vec::new()))
    })
    .await;
    let credentials = Credentials::Basic { username: "u".into(), password: crate::oci::Secret::new("p") };
    let error = puller().pull(&server.reference(":1"), &credentials, &Limits::PLUGIN).await.unwrap_err();
    // The store knows no signatures; what counts is what it was shown, and that the signature is not told.
    assert!(store.asked().iter().all(|asked| asked.authorization.is_none()) && store.count("signature") == 1);
    assert!(!error.to_string().contains("signature"), "{error}");
}

#[tokio::test]
async fn names_are_checked_when_they_are_dialled() {
    let server = Server::start(shelf(), |_, _| None).await;
    let reference = crate::oci::Reference::parse(&format!("localhost:{}/x/y:1", server.address.port())).unwrap();
    let policy =
        |listed: &[&str]| DialPolicy { loopback: false, listed: listed.iter().map(ToString::to_string).collect(), ..DialPolicy::default() };
    let pull = async |dial| {
        let puller = Puller::new(Registries { dial, ..settings() }).unwrap();
        puller.pull(&reference, &Credentials::Anonymous, &Limits::PLUGIN).await
    };
    let result = pull(policy(&[])).await;
    assert!(matches!(&result, Err(Error::Dial(Refused { host, range: Range::Loopback, .. })) if host == "localhost"), "{result:?}");
    assert!(pull(policy(&["localhost"])).await.is_ok() && pull(policy(&["127.0.0.0/8"])).await.is_ok());
}

#[tokio::test]
async fn token_services_are_checked_like_registries_for_plugins_and_components() {
    for (realm, expected) in [
        ("https://169.254.169.254/token", Range::LinkLocal),
        ("https://[fd00:ec2::254]/token", Range::Metadata),
        ("https://10.96.0.1/token", Range::Refused),
    ] {
        // The registry is listed; where it sends for a token is not.
        let dial =
            DialPolicy { loopback: false, listed: vec!["127.0.0.1".into()], refused: vec!["10.96.0.0/12".into()], ..DialPolicy::default() };
        let puller = Puller::new(Registries { dial, ..settings() }).unwrap();
        let challenge = vec![("www-authenticate", format!("Bearer realm=\"{realm}\""))];
        let server = Server::start(shelf(), move |_, _| Some(Reply::Full(401, challenge.clone(), Vec::new()))).await;
        let reference = server.reference(":1");
        let pulled = puller.pull(&reference, &Credentials::Anonymous, &Limits::PLUGIN).await.map(drop);
        let component = puller.component(&reference, &Credentials::Anonymous, 1 << 20).await.map(drop);
        for result in [pulled, component] {
            assert!(matches!(&result, Err(Error::Dial(Refused { range, .. })) if *range == expected), "{realm}: {result:?}");
        }
    }
}

#[tokio::test]
async fn slow_registries() {
    let timeouts = Timeouts { read: Duration::from_millis(300), ..settings().timeouts };
    let puller = Puller::new(Registries { timeouts, ..settings() }).unwrap();
    let (result, _) = pull_with(&puller, |asked, _| asked.path.contains("/manifests/").then_some(Reply::Silent)).await;
    assert!(
        matches!(&result, Err(error @ Error::Timeout { what, .. }) if what.starts_with("an answer") && error.transient()),
        "{result:?}"
    );
    let timeouts = Timeouts { total: Duration::from_millis(200), ..settings().timeouts };
    let puller = Puller::new(Registries { timeouts, ..settings() }).unwrap();
    let (result, _) = pull_with(&puller, |asked, _| asked.path.contains("/blobs/").then_some(Reply::Silent)).await;
    assert!(matches!(&result, Err(Error::Timeout { what, .. }) if what.starts_with("pulling ")), "{result:?}");
}

#[tokio::test]
async fn nobody_there() {
    let server = Server::start(Shelf::default(), |_, _| None).await;
    let puller = Puller::new(Registries { loopback_tls: vec![server.address.to_string()], ..settings() }).unwrap();
    let error = puller.resolve(&server.reference(":1"), &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(&error, Error::Tls { cure, .. } if cure.contains("plain HTTP")), "{error}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reference = crate::oci::Reference::parse(&format!("{closed}/x")).unwrap();
    let error = puller.resolve(&reference, &Credentials::Anonymous).await.unwrap_err();
    assert!(matches!(error, Error::Network { .. }) && error.transient(), "{error}");
}

#[tokio::test]
async fn pauses_are_bounded() {
    let mut patience = retry::Patience::new(Retries { tries: 9, pause: Duration::from_millis(1), total: Duration::ZERO });
    let mut tries = 0;
    let result: Result<(), Error> = patience
        .attempt(|| {
            tries += 1;
            std::future::ready(Err(Error::Network { at: "x".into(), problem: "y".into() }))
        })
        .await;
    assert!(result.is_err() && tries == 1);
}

#[test]
fn retry_after_in_both_forms() {
    let of = |text: &'static str| {
        retry::retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]), SystemTime::UNIX_EPOCH)
    };
    assert_eq!(of("7"), Some(Duration::from_secs(7)));
    assert_eq!(of("Thu, 01 Jan 1970 00:00:09 GMT"), Some(Duration::from_secs(9)));
    assert_eq!(of("99999999999"), Some(Duration::from_secs(3600)));
    assert_eq!(of("soon"), None);
}

#[test]
fn settings_are_checked() {
    let wrong = |registries: Registries| Puller::new(registries).unwrap_err().to_string();
    assert_eq!(
        wrong(Registries { ca_bundles: vec![b"x".to_vec()], ..settings() }),
        "CA bundle 1 of the registries holds no certificate in PEM form"
    );
    let proxies = crate::oci::Proxies { https: Some("http://u:hunter2@".into()), ..Default::default() };
    let text = wrong(Registries { proxies: proxies.clone(), ..settings() });
    assert!(!text.contains("hunter2") && !format!("{proxies:?}").contains("hunter2"), "{text}");
    let dial = DialPolicy { listed: vec!["10.0.0.0/40".into()], ..DialPolicy::default() };
    assert!(wrong(Registries { dial, ..settings() }).contains("neither host, address nor range"));
}
