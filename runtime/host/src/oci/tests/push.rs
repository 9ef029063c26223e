use std::sync::{Arc, Mutex};

use super::{
    package::component,
    registry::{Asked, Reply, Server, Shelf, puller, status},
    uploads::{Uploads, begun},
};
use crate::oci::{Blob, Credentials, Error, Package, PushError, Pushed, Secret, Upload, Watch};

const ANYBODY: Credentials = Credentials::Anonymous;

fn upload() -> Upload {
    Package::new(&component(), "policy.wasm").cncf().unwrap()
}

/// A registry that takes pushes, unless `fault` says something else.
async fn registry(fault: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> (Server, Uploads) {
    let uploads = Uploads::default();
    let stored = uploads.clone();
    let server = Server::start(Shelf::default(), move |asked, before| fault(asked, before).or_else(|| stored.reply(asked))).await;
    (server, uploads)
}

async fn pushed(fault: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> (Result<Pushed, PushError>, Server) {
    let (server, _) = registry(fault).await;
    (puller().push(&server.reference(":1"), &ANYBODY, &upload()).await, server)
}

/// The error that is not about layouts.
async fn fault(fault: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> Error {
    match pushed(fault).await.0 {
        Err(PushError::Registry(error)) => error,
        other @ (Ok(_) | Err(PushError::Layout { .. } | PushError::Pinned(_))) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_pushed_is_pulled() {
    let (server, uploads) = registry(|_, _| None).await;
    let reference = server.reference(":1");
    let first = puller().push(&reference, &ANYBODY, &upload()).await.unwrap();
    assert_eq!((first.sent, first.present), (2, 0));
    assert_eq!(first.reference, reference.with_digest(&first.digest).unwrap());
    let manifest = uploads.held("/v2/x/y/manifests/1").unwrap();
    assert_eq!(manifest, upload().manifest);
    let component = puller().component(&reference, &ANYBODY, 1 << 20).await.unwrap();
    assert_eq!(
        (component.bytes, component.manifest_digest, component.layout.as_str()),
        (super::package::component(), first.digest, "cncf")
    );
    // The name comes last: nobody pulls what is not there yet.
    let methods: Vec<String> = server.asked().iter().map(|asked| asked.method.clone()).collect();
    assert_eq!(methods[..8], ["GET", "HEAD", "POST", "PUT", "HEAD", "POST", "PUT", "PUT"].map(str::to_owned));
    assert!(server.asked()[7].path.ends_with("/manifests/1"));
    assert_eq!(server.asked()[7].content_type.as_deref(), Some("application/vnd.oci.image.manifest.v1+json"));
    let again = puller().push(&reference, &ANYBODY, &upload()).await.unwrap();
    assert_eq!((again.sent, again.present, again.reference), (0, 2, first.reference));
}

#[tokio::test]
async fn a_digest_is_no_place_to_push_to() {
    let (server, _) = registry(|_, _| None).await;
    let pinned = server.reference(":1").with_digest(&upload().digest).unwrap();
    let error = puller().push(&pinned, &ANYBODY, &upload()).await.unwrap_err();
    assert!(matches!(error, PushError::Pinned(_)) && error.to_string().contains("write registry/repository:tag"), "{error}");
    let error = puller().copy((&server.reference(":1"), &ANYBODY), (&pinned, &ANYBODY), 1 << 20).await.unwrap_err();
    assert!(matches!(error, PushError::Pinned(_)) && server.asked().is_empty());
}

#[tokio::test]
async fn tokens_are_for_what_is_done() {
    let address = Arc::new(std::sync::OnceLock::<std::net::SocketAddr>::new());
    let known = address.clone();
    let (server, _) = registry(move |asked, _| {
        if asked.path.starts_with("/token") {
            let token = if asked.path.contains("pull%2Cpush") { "both" } else { "read" };
            return Some(status(200, &format!(r#"{{"token": "{token}", "expires_in": 300}}"#)));
        }
        let may = match asked.authorization.as_deref() {
            Some("Bearer both") => true,
            Some("Bearer read") => matches!(asked.method.as_str(), "GET" | "HEAD"),
            Some(_) | None => false,
        };
        let challenge = format!("Bearer realm=\"http://{}/token\",service=\"s\"", known.get()?);
        (!may).then(|| Reply::Full(401, vec![("www-authenticate", challenge)], Vec::new()))
    })
    .await;
    address.set(server.address).unwrap();
    let user = Credentials::Basic { username: "u".into(), password: Secret::new("p") };
    let (puller, reference) = (puller(), server.reference(":1"));
    // A token that was kept for pulls is not shown for a push.
    assert!(matches!(puller.resolve(&reference, &user).await, Err(Error::NotFound { .. })));
    puller.push(&reference, &user, &upload()).await.unwrap();
    puller.component(&reference, &user, 1 << 20).await.unwrap();
    let tokens: Vec<String> = server.asked().into_iter().map(|asked| asked.path).filter(|path| path.starts_with("/token")).collect();
    assert_eq!(tokens, ["/token?service=s&scope=repository%3Ax%2Fy%3Apull", "/token?service=s&scope=repository%3Ax%2Fy%3Apull%2Cpush"]);
}

#[tokio::test]
async fn another_host_gets_the_content_and_no_credentials() {
    let (other, stored) = registry(|_, _| None).await;
    let elsewhere = format!("http://{}/v2/x/y/blobs/uploads/1?state=a%2Fb", other.address);
    let user = Credentials::Basic { username: "u".into(), password: Secret::new("p") };
    let (server, _) = registry(move |asked, _| match (asked.method.as_str(), asked.authorization.as_deref()) {
        (_, None) => Some(Reply::Full(401, vec![("www-authenticate", "Basic realm=\"x\"".to_owned())], Vec::new())),
        ("POST", Some(_)) => Some(begun(&elsewhere)),
        ("PUT", Some(_)) => Some(Reply::Full(201, Vec::new(), Vec::new())),
        (_, Some(_)) => None,
    })
    .await;
    puller().push(&server.reference(":1"), &user, &upload()).await.unwrap();
    let blob = &upload().blobs[1];
    assert_eq!(stored.held(&format!("/v2/x/y/blobs/{}", blob.digest)).as_ref(), Some(&blob.bytes));
    assert!(other.asked().len() == 2 && other.asked().iter().all(|asked| asked.authorization.is_none()), "{:?}", other.asked());
}

#[tokio::test]
async fn places_to_upload_to_are_looked_at() {
    let at = async |location: &'static str| fault(move |asked, _| (asked.method == "POST").then(|| begun(location))).await;
    let error = at("http://registry.example/v2/x").await;
    assert!(matches!(&error, Error::Downgrade { place, .. } if place == "registry.example"), "{error}");
    assert!(matches!(at("https://169.254.169.254/latest/api/token").await, Error::Dial(_)));
    assert!(matches!(at("ftp://127.0.0.1/x").await, Error::Downgrade { .. }));
    let error = fault(|asked, _| (asked.method == "POST").then(|| status(202, ""))).await;
    assert!(error.to_string().contains("no place to upload to"), "{error}");
}

#[tokio::test]
async fn redirects_keep_what_is_sent_or_end() {
    let moved = |code: u16| {
        move |asked: &Asked, _: usize| {
            let there = asked.path.replace("/manifests/1", "/manifests/there");
            (asked.method == "PUT" && asked.path.ends_with("/manifests/1"))
                .then(|| Reply::Full(code, vec![("location", there)], Vec::new()))
        }
    };
    let (server, uploads) = registry(moved(307)).await;
    puller().push(&server.reference(":1"), &ANYBODY, &upload()).await.unwrap();
    assert_eq!(uploads.held("/v2/x/y/manifests/there"), Some(upload().manifest));
    let error = fault(moved(302)).await;
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_does_not_know_the_layout() {
    let invalid = |asked: &Asked, _: usize| {
        let body = r#"{"errors": [{"code": "MANIFEST_INVALID", "message": "manifest invalid", "detail": {}}]}"#;
        (asked.method == "PUT" && asked.path.contains("/manifests/")).then(|| status(400, body))
    };
    let (result, server) = pushed(invalid).await;
    let error = result.unwrap_err();
    assert!(matches!(error, PushError::Layout { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "{0} answers 400 to the manifest of {0}/x/y:1 (\"manifest invalid\"); the registry may not know configs of type application/vnd.wasm.config.v0+json: try `--layout legacy`",
            server.address
        )
    );
    let legacy = Package::new(&component(), "policy.wasm").legacy().unwrap();
    let error = puller().push(&server.reference(":1"), &ANYBODY, &legacy).await.unwrap_err();
    assert!(matches!(error, PushError::Registry(Error::Status { status: 400, .. })), "{error}");
}

#[tokio::test]
async fn faults_of_registries() {
    let busy = |asked: &Asked, before: usize| (asked.path.contains("/blobs/uploads/1") && before == 0).then(|| status(503, ""));
    let (result, server) = pushed(busy).await;
    assert_eq!(result.unwrap().sent, 2);
    // Each blob has a place of its own in the log; both were sent again from the start.
    assert_eq!(server.asked().iter().filter(|asked| asked.method == "POST").count(), 4);
    let error = fault(|asked, _| (asked.method == "POST").then(|| status(403, ""))).await;
    assert!(error.to_string().ends_with("without credentials; grant the account write access"), "{error}");
    let other = Blob::new("x", b"other".to_vec()).digest;
    let error = fault(move |asked, _| {
        (asked.method == "PUT").then(|| Reply::Full(201, vec![("docker-content-digest", other.clone())], Vec::new()))
    })
    .await;
    assert!(matches!(error, Error::Digest { .. }), "{error}");
    // Who does not answer the question is sent the blob.
    let (result, _) = pushed(|asked, _| (asked.method == "HEAD").then(|| status(405, ""))).await;
    assert_eq!(result.unwrap().sent, 2);
    let short = |asked: &Asked, _: usize| (asked.method == "HEAD").then(|| status(200, "another length"));
    assert_eq!(pushed(short).await.0.unwrap().sent, 2);
}

#[derive(Default)]
struct Seen(Mutex<Vec<(u64, u64)>>);

impl Watch for Seen {
    fn moved(&self, _: &str, done: u64, of: u64) {
        self.0.lock().unwrap().push((done, of));
    }
}

#[tokio::test]
async fn who_waits_is_told() {
    let (server, _) = registry(|_, _| None).await;
    let seen = Arc::new(Seen::default());
    let puller = puller().watched(seen.clone());
    puller.push(&server.reference(":1"), &ANYBODY, &upload()).await.unwrap();
    let size = component().len() as u64;
    assert!(seen.0.lock().unwrap().ends_with(&[(0, size), (size, size)]));
    seen.0.lock().unwrap().clear();
    puller.component(&server.reference(":1"), &ANYBODY, 1 << 20).await.unwrap();
    assert_eq!(seen.0.lock().unwrap().last(), Some(&(size, size)));
}
