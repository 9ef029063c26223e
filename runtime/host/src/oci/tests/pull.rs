use serde_json::json;

use super::{
    registry::{Asked, IMAGE, INDEX, LAYER, Reply, Server, Shelf, puller, settings, status},
    tarball::{Tar, plugin},
};
use crate::oci::{Credentials, DialPolicy, Error, Limits, ManifestError, Proxies, Puller, Reference, Registries, Secret};

fn basic() -> Credentials {
    Credentials::Basic { username: "user".into(), password: Secret::new("pass") }
}

/// Base64 of `user:pass`.
const BASIC: &str = "Basic dXNlcjpwYXNz";

/// A registry with a token service at its own address, which gives tokens for `user:pass` and for refresh token `r`.
fn tokens(asked: &Asked) -> Option<Reply> {
    if asked.path.starts_with("/token") {
        let good = asked.authorization.as_deref() == Some(BASIC) || asked.body.contains("refresh_token=r");
        return Some(if good {
            status(200, r#"{"token": "t", "expires_in": 300}"#)
        } else {
            status(401, r#"{"details": "incorrect username or password"}"#)
        });
    }
    if asked.authorization.as_deref() == Some("Bearer t") {
        return None;
    }
    Some(Reply::Full(
        401,
        vec![("www-authenticate", "Bearer realm=\"http://HOST/token?a=b\",service=\"reg,istry\"".to_owned())],
        b"<html>".to_vec(),
    ))
}

async fn with_tokens(shelf: Shelf) -> Server {
    let address = std::sync::Arc::new(std::sync::OnceLock::new());
    let known = address.clone();
    let server = Server::start(shelf, move |asked, _| {
        let host: &std::net::SocketAddr = known.get()?;
        match tokens(asked)? {
            Reply::Full(status, headers, body) => Some(Reply::Full(
                status,
                headers.into_iter().map(|(name, value)| (name, value.replace("HOST", &host.to_string()))).collect(),
                body,
            )),
            other @ (Reply::Cut(_) | Reply::Endless | Reply::Silent) => Some(other),
        }
    })
    .await;
    address.set(server.address).unwrap();
    server
}

#[tokio::test]
async fn images_and_digests() {
    let mut shelf = Shelf::default();
    let descriptor = shelf.image("1", &[plugin().gzip(), Tar::default().file(".wh.schema.lua", "").file("new.lua", "x").gzip()]);
    let server = Server::start(shelf, |_, _| None).await;
    let artifact = puller().pull(&server.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap();
    assert_eq!(artifact.files.keys().collect::<Vec<_>>(), ["handler.lua", "new.lua"]);
    assert_eq!(
        (artifact.digest.as_str(), artifact.media_type.as_str(), artifact.index_digest),
        (descriptor["digest"].as_str().unwrap(), IMAGE, None)
    );
    let resolved = puller().resolve(&server.reference(":1"), &Credentials::Anonymous).await.unwrap();
    assert_eq!((resolved.digest.as_str(), resolved.media_type.as_str()), (artifact.digest.as_str(), IMAGE));
    let pinned = server.reference(":other").with_digest(&artifact.digest).unwrap();
    assert_eq!(puller().pull(&pinned, &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap().digest, artifact.digest);
    assert_eq!(puller().resolve(&pinned, &Credentials::Anonymous).await.unwrap(), resolved);
}

#[tokio::test]
async fn indexes() {
    let mut shelf = Shelf::default();
    let mut amd = shelf.image("a", &[plugin().gzip()]);
    let mut arm = shelf.manifest(
        "b",
        IMAGE,
        &json!({"schemaVersion": 2, "annotations": {"built": "for arm"}, "layers": [shelf.clone().blob(LAYER, &plugin().gzip())]}),
    );
    let mut other = shelf.image("c", &[Tar::default().file("handler.lua", "other").gzip()]);
    let attestation = json!({"mediaType": IMAGE, "digest": format!("sha256:{}", "9".repeat(64)), "size": 1, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}});
    amd["platform"] = json!({"os": "linux", "architecture": "amd64"});
    arm["platform"] = json!({"os": "linux", "architecture": "arm64", "variant": "v8"});
    other["platform"] = json!({"os": "linux", "architecture": "s390x"});
    let index = |entries: &[&serde_json::Value]| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let one = shelf.manifest("one", INDEX, &index(&[&amd, &attestation]));
    shelf.manifest("same", INDEX, &index(&[&amd, &arm, &attestation]));
    shelf.manifest("differ", INDEX, &index(&[&amd, &arm, &other]));
    shelf.manifest("nested", INDEX, &index(&[&one]));
    let server = Server::start(shelf, |_, _| None).await;
    let pull = async |tag: &str| puller().pull(&server.reference(tag), &Credentials::Anonymous, &Limits::PLUGIN).await;
    let artifact = pull(":one").await.unwrap();
    assert_eq!((artifact.digest.as_str(), artifact.index_digest.as_deref()), (amd["digest"].as_str().unwrap(), one["digest"].as_str()));
    assert_eq!(pull(":same").await.unwrap().digest, artifact.digest);
    let error = pull(":differ").await.unwrap_err().to_string();
    assert!(
        error.contains("linux/amd64 (sha256:")
            && error.contains("linux/arm64/v8")
            && error.contains("linux/s390x")
            && error.contains("name one by its digest"),
        "{error}"
    );
    assert!(matches!(pull(":nested").await, Err(Error::Manifest { source, .. }) if *source == ManifestError::Nested));
}

#[tokio::test]
async fn tokens_for_passwords_and_identity_tokens() {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    let server = with_tokens(shelf).await;
    let puller = puller();
    let artifact = puller.pull(&server.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    assert!(artifact.notes.is_empty());
    let token = server.asked().into_iter().find(|asked| asked.path.starts_with("/token")).unwrap();
    assert_eq!(token.path, "/token?a=b&service=reg%2Cistry&scope=repository%3Ax%2Fy%3Apull");
    // The token is kept, so that the second pull asks for none.
    puller.pull(&server.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    assert_eq!(server.count("/token"), 1);
    let refresh = Credentials::IdentityToken { token: Secret::new("r") };
    puller.pull(&server.reference(":1"), &refresh, &Limits::PLUGIN).await.unwrap();
    let post = server.asked().into_iter().find(|asked| asked.method == "POST").unwrap();
    assert_eq!(
        (post.path.as_str(), post.body.starts_with("grant_type=refresh_token&client_id=weir&service=reg%2Cistry&scope=")),
        ("/token?a=b", true)
    );
    let ready = Credentials::RegistryToken { token: Secret::new("t") };
    puller.pull(&server.reference(":1"), &ready, &Limits::PLUGIN).await.unwrap();
    assert_eq!(server.count("/token"), 2);
}

#[tokio::test]
async fn bad_credentials_are_named_as_such() {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    let server = with_tokens(shelf).await;
    let wrong = Credentials::Basic { username: "user".into(), password: Secret::new("wrong") };
    let error = puller().pull(&server.reference(":1"), &wrong, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: true, .. }) && !error.transient());
    assert_eq!(
        error.to_string(),
        format!(
            "{0} refuses the credentials for {0}/x/y (\"incorrect username or password\"); check the pull secret: user, token and its scope, and whether the repository exists",
            server.address
        )
    );
    let error = puller().pull(&server.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: false, .. }), "{error}");
    assert!(error.to_string().contains("wants credentials for"), "{error}");
    // Tokens that the registry does not take are not asked for without end.
    let stale = Credentials::RegistryToken { token: Secret::new("old") };
    let error = puller().pull(&server.reference(":1"), &stale, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: true, .. }), "{error}");
}

#[tokio::test]
async fn basic_authentication() {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    let hook = |asked: &Asked, _: usize| {
        let challenge = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
        (asked.authorization.as_deref() != Some(BASIC)).then(|| Reply::Full(401, challenge, b"wrong: secret-password".to_vec()))
    };
    let server = Server::start(shelf, hook).await;
    puller().pull(&server.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    let wrong = Credentials::Basic { username: "user".into(), password: Secret::new("secret-password") };
    let error = puller().pull(&server.reference(":1"), &wrong, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: true, .. }) && error.to_string().contains("<redacted>"), "{error}");
    let token = Credentials::IdentityToken { token: Secret::new("r") };
    assert!(matches!(puller().resolve(&server.reference(":1"), &token).await, Err(Error::WrongKind { .. })));
}

#[tokio::test]
async fn credentials_that_nobody_asked_for() {
    let mut shelf = Shelf::default();
    shelf.image("1", &[plugin().gzip()]);
    let server = Server::start(shelf, |_, _| None).await;
    let artifact = puller().pull(&server.reference(":1"), &basic(), &Limits::PLUGIN).await.unwrap();
    assert_eq!(artifact.notes, [format!("{} asked for no credentials, so those given were not used", server.address)]);
    assert!(server.asked().iter().all(|asked| asked.authorization.is_none()));
}

#[tokio::test]
async fn only_allowed_registries_are_asked() {
    let server = Server::start(Shelf::default(), |_, _| None).await;
    let puller = Puller::new(Registries { allowed: vec!["ghcr.io/kong".into()], ..settings() }).unwrap();
    let error = puller.pull(&server.reference(":1"), &Credentials::Anonymous, &Limits::PLUGIN).await.unwrap_err();
    assert!(matches!(error, Error::NotAllowed { .. }) && server.asked().is_empty());
}

#[tokio::test]
async fn proxies_resolve_for_themselves() {
    let proxy = Server::start(Shelf::default(), |_, _| Some(status(503, ""))).await;
    let puller = |proxies: Proxies| {
        let dial = DialPolicy { loopback: false, ..DialPolicy::default() };
        let insecure = vec!["reg.invalid".into(), "169.254.169.254".into()];
        Puller::new(Registries { proxies, dial, insecure, ..settings() }).unwrap()
    };
    let through = Proxies { http: Some(format!("http://localhost:{}", proxy.address.port())), ..Proxies::default() };
    let ask =
        async |puller: &Puller, text: &str| puller.resolve(&Reference::parse(text).unwrap(), &Credentials::Anonymous).await.unwrap_err();
    let error = ask(&puller(through.clone()), "reg.invalid/x").await;
    assert!(matches!(error, Error::Status { status: 503, .. }) && proxy.count("http://reg.invalid/v2/") == 3, "{error}");
    // What is written as an address is checked all the same.
    assert!(matches!(ask(&puller(through.clone()), "169.254.169.254/x").await, Error::Dial(_)));
    let error = ask(&puller(Proxies { no_proxy: Some(".invalid".into()), ..through }), "reg.invalid/x").await;
    assert!(matches!(error, Error::Network { .. }) && proxy.asked().len() == 3, "{error}");
}
