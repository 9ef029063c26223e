use crate::oci::{Credentials, CredentialsError, DockerConfig, MAX_CONFIG, Reference, Secret, docker_config};

/// `user:pass`, with and without padding.
const PADDED: &str = "dXNlcjpwYXNz";

fn find(auths: &str, reference: &str) -> Result<Credentials, CredentialsError> {
    let config = format!("{{\"auths\": {auths}}}");
    docker_config(DockerConfig::Json, config.as_bytes(), &Reference::parse(reference).unwrap())
}

fn user(auths: &str, reference: &str) -> String {
    match find(auths, reference).unwrap() {
        Credentials::Basic { username, .. } => username,
        other @ (Credentials::Anonymous | Credentials::IdentityToken { .. } | Credentials::RegistryToken { .. }) => format!("{other:?}"),
    }
}

fn entry(user: &str) -> String {
    format!(r#"{{"username": "{user}", "password": "p"}}"#)
}

#[test]
fn keys_match_as_docker_and_the_kubelet_have_them() {
    let table = [
        ("https://index.docker.io/v1/", "busybox", true),
        ("docker.io", "busybox", true),
        ("registry-1.docker.io", "kong/x", true),
        ("ghcr.io", "ghcr.io/a/b", true),
        ("https://ghcr.io", "ghcr.io/a/b", true),
        ("http://ghcr.io/v2/", "ghcr.io/a/b", true),
        ("ghcr.io/a", "ghcr.io/a/b", true),
        ("ghcr.io/a", "ghcr.io/ab/b", false),
        ("ghcr.io/v2/a", "ghcr.io/a/b", true),
        ("ghcr.io/v2x", "ghcr.io/a/b", false),
        ("*.example.com", "reg.example.com/x", true),
        ("*.example.com", "a.reg.example.com/x", false),
        ("*.example.com", "example.com/x", false),
        ("r*g.example.com:5000", "reg.example.com:5000/x", true),
        ("reg.example.com", "reg.example.com:5000/x", false),
        ("[::1]:5000", "[::1]:5000/x", true),
        ("evil.com", "ghcr.io/x", false),
    ];
    for (key, reference, found) in table {
        let result = find(&format!(r#"{{"{key}": {}}}"#, entry("u")), reference);
        assert_eq!(result.is_ok(), found, "{key} for {reference}: {result:?}");
    }
}

#[test]
fn the_most_specific_key_wins() {
    let auths = format!(
        r#"{{"*.io": {}, "ghcr.io": {}, "ghcr.io/kong": {}, "ghcr.io/kong/x": {}}}"#,
        entry("wild"),
        entry("host"),
        entry("path"),
        entry("longest")
    );
    for (reference, wins) in [("quay.io/x", "wild"), ("ghcr.io/a", "host"), ("ghcr.io/kong/y", "path"), ("ghcr.io/kong/x", "longest")] {
        assert_eq!(user(&auths, reference), wins);
    }
}

#[test]
fn entries() {
    let one = |entry: &str| find(&format!(r#"{{"ghcr.io": {entry}}}"#), "ghcr.io/x");
    let basic = Credentials::Basic { username: "user".into(), password: Secret::new("pass") };
    assert_eq!(one(&format!(r#"{{"auth": "{PADDED}"}}"#)).unwrap(), basic);
    assert_eq!(one(r#"{"auth": "dXNlcjpwYXNzAAA="}"#).unwrap(), basic);
    assert_eq!(one(r#"{"username": "user", "password": "pass", "email": "x"}"#).unwrap(), basic);
    assert_eq!(one(r#"{"auth": "", "identitytoken": "t"}"#).unwrap(), Credentials::IdentityToken { token: Secret::new("t") });
    assert_eq!(one(r#"{"registrytoken": "t"}"#).unwrap(), Credentials::RegistryToken { token: Secret::new("t") });
    for (entry, problem) in [
        (r#"{"auth": "%%%"}"#, "no base64"),
        (r#"{"auth": "dXNlcg=="}"#, "user:pass"),
        (r#"{"auth": "/////w=="}"#, "no text"),
        (r#"{"auth": 1}"#, "fields are texts"),
        (r#"{"username": "u"}"#, "no password"),
        ("{}", "credential helper"),
        (r#""secret""#, "malformed"),
    ] {
        let error = one(entry).unwrap_err();
        assert!(matches!(&error, CredentialsError::Malformed { key, .. } if key == "ghcr.io"), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    // A broken entry of another registry is somebody else's.
    assert!(find(&format!(r#"{{"quay.io": {{"auth": "%"}}, "ghcr.io": {}}}"#, entry("u")), "ghcr.io/x").is_ok());
}

#[test]
fn files() {
    let reference = Reference::parse("ghcr.io/x").unwrap();
    let read = |kind, bytes: &[u8]| docker_config(kind, bytes, &reference);
    assert!(read(DockerConfig::Legacy, format!(r#"{{"ghcr.io": {}}}"#, entry("u")).as_bytes()).is_ok());
    assert_eq!(read(DockerConfig::Json, b"{}"), Err(CredentialsError::NoAuths));
    assert_eq!(read(DockerConfig::Json, b"{\"auths\": 1}"), Err(CredentialsError::NoAuths));
    assert_eq!(read(DockerConfig::Json, b"\nhunter2"), Err(CredentialsError::NotJson { line: 2 }));
    assert!(matches!(read(DockerConfig::Json, &vec![b' '; MAX_CONFIG + 1]), Err(CredentialsError::TooLarge { .. })));
    let none = read(DockerConfig::Json, format!(r#"{{"auths": {{"quay.io": {}}}}}"#, entry("u")).as_bytes()).unwrap_err();
    assert!(matches!(none, CredentialsError::NoEntry { .. }));
    assert_eq!(none.to_string(), "the docker config has no entry for ghcr.io/x; it has entries for: quay.io");
}

#[test]
fn secrets_stay_secret() {
    let basic = |password: &str| Credentials::Basic { username: "u".into(), password: Secret::new(password) };
    assert!(!format!("{:?}", basic("hunter2")).contains("hunter2"));
    assert_eq!(basic("a").identity(), basic("a").identity());
    assert_ne!(basic("a").identity(), basic("b").identity());
    assert_ne!(
        Credentials::IdentityToken { token: Secret::new("t") }.identity(),
        Credentials::RegistryToken { token: Secret::new("t") }.identity()
    );
    assert_eq!(basic("hunter2").scrub("wrong password hunter2"), "wrong password <redacted>");
}
