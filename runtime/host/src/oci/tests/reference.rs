use crate::oci::{Reference, Registries};

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn canonical_forms() {
    let table = [
        ("busybox", "docker.io/library/busybox:latest"),
        ("kong/plugin", "docker.io/kong/plugin:latest"),
        ("index.docker.io/kong/plugin:1", "docker.io/kong/plugin:1"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("localhost/x", "localhost/x:latest"),
        ("localhost:5000/x/y:v1.0", "localhost:5000/x/y:v1.0"),
        ("GHCR.io/kong/x", "ghcr.io/kong/x:latest"),
        ("[::1]:5000/x:1", "[::1]:5000/x:1"),
        ("[2001:DB8::1]/x", "[2001:db8::1]/x:latest"),
        ("10.0.0.1/x", "10.0.0.1/x:latest"),
        ("reg.example.com:443/a/b__c/d-e.f:_t", "reg.example.com:443/a/b__c/d-e.f:_t"),
        ("a.b/c---d", "a.b/c---d:latest"),
    ];
    for (text, canonical) in table {
        let parsed = Reference::parse(text).unwrap();
        assert_eq!(parsed.to_string(), canonical);
        assert_eq!(Reference::parse(canonical).unwrap(), parsed, "{canonical}");
    }
}

#[test]
fn digest_wins_over_tag() {
    let both = Reference::parse(&format!("ghcr.io/x/y:1@sha256:{HEX}")).unwrap();
    assert_eq!((both.tag(), both.version()), (Some("1"), &*format!("sha256:{HEX}")));
    let only = Reference::parse(&format!("ghcr.io/x/y@sha256:{HEX}")).unwrap();
    assert_eq!((only.tag(), only.digest().is_some()), (None, true));
    let pinned = Reference::parse("x:1").unwrap().with_digest(&format!("sha256:{HEX}")).unwrap();
    assert_eq!(pinned.to_string(), format!("docker.io/library/x:1@sha256:{HEX}"));
    assert_eq!((pinned.registry(), pinned.api(), pinned.repository()), ("docker.io", "registry-1.docker.io", "library/x"));
    assert!(pinned.with_digest("sha256:../../etc").is_err());
}

#[test]
fn refusals_name_text_and_problem() {
    let long = format!("a.b/{}", "x".repeat(300));
    let table = [
        ("", "it is empty"),
        ("a b", "white space"),
        ("https://ghcr.io/x/y", "leave out \"https://\""),
        ("oci://ghcr.io/x/y", "leave out \"oci://\""),
        ("ghcr.io/Kong/x", "upper-case"),
        ("ghcr.io/", "names no repository"),
        ("[::1]:5000", "names no repository"),
        ("ghcr.io//x", "cannot be a part"),
        ("ghcr.io/../x", "cannot be a part"),
        ("ghcr.io/x..y", "cannot be a part"),
        ("ghcr.io/-x", "cannot be a part"),
        ("ghcr.io/x?y", "cannot be a part"),
        ("ghcr.io/x:", "is no tag"),
        ("ghcr.io/x:-1", "is no tag"),
        ("ghcr.io/x@sha256:abc", "is no digest"),
        ("ghcr.io/x@md5:abc", "is no digest"),
        ("ghcr.io:0/x", "is no registry"),
        ("ghcr.io:99999/x", "is no registry"),
        ("-a.b/x", "is no registry"),
        ("1.2.3.400/x", "is no registry"),
        ("0x7f.1/x", "is no registry"),
        ("127.1:80/x", "is no registry"),
        ("[::zz]/x", "is no registry"),
        ("u:p@ghcr.io/x", "is no digest"),
        (&long, "repository has 300 bytes"),
    ];
    for (text, problem) in table {
        let error = Reference::parse(text).unwrap_err().to_string();
        assert!(error.starts_with("image reference \"") && error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn prefixes_end_at_slashes() {
    let permits = |prefix: &str, text: &str| {
        Registries { allowed: vec![prefix.into()], ..Registries::default() }.permits(&Reference::parse(text).unwrap())
    };
    assert!(permits("ghcr.io/kong", "ghcr.io/kong/x") && permits("ghcr.io/kong/", "ghcr.io/kong/x") && permits("ghcr.io", "ghcr.io/a/b"));
    assert!(permits("index.docker.io/library", "busybox") && permits("ghcr.io/kong/x", "ghcr.io/kong/x:1"));
    assert!(!permits("ghcr.io/kong", "ghcr.io/kong-evil/x") && !permits("ghcr.io", "ghcr.io.evil.example/x"));
}

#[test]
fn plain_http_is_for_loopback_and_what_is_listed() {
    let registries = Registries { insecure: vec!["reg:5000".into()], loopback_tls: vec!["localhost:5443".into()], ..Registries::default() };
    for (host, authority, plain) in [
        ("localhost", "localhost", true),
        ("localhost", "localhost:5443", false),
        ("x.localhost", "x.localhost:1", true),
        ("127.0.0.9", "127.0.0.9:1", true),
        ("[::1]", "[::1]:1", true),
        ("reg", "reg:5000", true),
        ("reg", "reg:5001", false),
        ("localhost.example.com", "localhost.example.com", false),
    ] {
        assert_eq!(registries.plain(host, authority), plain, "{authority}");
    }
}
