use std::{fs, path::Path};

use crate::oci::{
    DialPolicy, Proxies, Puller, Registries, Rule,
    registries_file::{File, Problem, read},
};

const HEAD: &str = "apiVersion: weir.dev/v1alpha1\nkind: Registries\n";

fn parse(body: &str) -> Result<File, Problem> {
    let root = tempfile::tempdir().unwrap();
    in_directory(root.path(), &format!("{HEAD}{body}"))
}

fn in_directory(root: &Path, text: &str) -> Result<File, Problem> {
    let path = root.join("registries.yaml");
    fs::write(&path, text).unwrap();
    read(&path).map_err(|error| {
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        error.problem
    })
}

fn registries(body: &str) -> Registries {
    parse(body).unwrap().registries(Registries::default())
}

/// What is wrong with a file of this body.
fn wrong(body: &str) -> String {
    parse(body).unwrap_err().to_string()
}

fn pem() -> String {
    rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem()
}

#[test]
fn everything_that_can_be_said() {
    let root = tempfile::tempdir().unwrap();
    let (file, inline) = (pem(), pem());
    fs::write(root.path().join("corp.pem"), &file).unwrap();
    let text = format!(
        "{HEAD}\
allowed: [ghcr.io/acme, registry.corp:5000]
registries:
- prefix: index.docker.io/library/
  mirrors:
  - {{location: mirror.corp:5000/dockerhub, insecure: true}}
  - location: '[fd00::1]:80'
  mirrorOnly: true
- prefix: registry.corp:5000
  insecure: true
  caFile: corp.pem
- prefix: ghcr.io/acme
  insecure: false
  ca: |
    {}
proxies: {{https: 'http://u:p@proxy:3128', noProxy: .corp}}
dial: {{listed: [10.0.0.0/8], refused: [10.96.0.0/12], private: false, loopback: true}}
authFile: docker/config.json
",
        inline.trim().replace('\n', "\n    ")
    );
    let found = in_directory(root.path(), &text).unwrap();
    assert_eq!(found.auth_file(), Some(root.path().join("docker/config.json").as_path()));
    let base = Registries {
        insecure: vec!["old.corp".into()],
        allowed: vec!["old.corp".into()],
        proxies: Proxies { https: Some("http://old".into()), http: Some("http://old".into()), no_proxy: None },
        dial: DialPolicy { loopback: false, private: true, listed: vec!["1.2.3.4".into()], refused: vec!["1.2.0.0/16".into()] },
        ..Registries::default()
    };
    let all = found.registries(base);
    assert_eq!(all.allowed, ["old.corp", "ghcr.io/acme", "registry.corp:5000"]);
    assert_eq!(all.insecure, ["old.corp", "mirror.corp:5000", "registry.corp:5000"]);
    assert_eq!(all.loopback_tls, ["[fd00::1]:80", "docker.io", "ghcr.io"]);
    assert_eq!(
        (all.proxies.https.as_deref(), all.proxies.http.as_deref(), all.proxies.no_proxy.as_deref()),
        (Some("http://u:p@proxy:3128"), Some("http://old"), Some(".corp"))
    );
    assert_eq!((all.dial.loopback, all.dial.private), (true, false));
    assert_eq!(all.dial.refused, ["1.2.0.0/16", "10.96.0.0/12"]);
    assert_eq!(found.files(), [root.path().join("corp.pem")]);
    assert_eq!(all.dial.listed, ["1.2.3.4", "10.0.0.0/8", "fd00::1", "docker.io", "ghcr.io", "mirror.corp", "registry.corp"]);
    assert_eq!(
        all.rules,
        [
            Rule {
                prefix: "docker.io/library".into(),
                mirrors: vec!["mirror.corp:5000/dockerhub".into(), "[fd00::1]:80".into()],
                mirror_only: true,
                ca: None,
            },
            Rule { prefix: "registry.corp:5000".into(), ca: Some(file.into_bytes()), ..Rule::default() },
            Rule { prefix: "ghcr.io/acme".into(), ca: Some(inline.into_bytes()), ..Rule::default() },
        ]
    );
    assert!(Puller::new(all).is_ok());
}

#[test]
fn little_is_enough() {
    assert_eq!(registries(""), Registries::default());
    let found = registries("registries: [{prefix: ghcr.io}]\ndial: {}\nproxies: {}\n");
    assert_eq!((found.rules.len(), found.dial.private, found.dial.listed.as_slice()), (1, true, &["ghcr.io".to_owned()][..]));
}

#[test]
fn fields_are_named() {
    for (body, expected) in [
        ("registry: []", "the file (line 3) has no field `registry`; its fields are apiVersion, kind, allowed, registries, "),
        ("registries:\n- prefix: ghcr.io\n  mirors: []", "registries[0] (line 5) has no field `mirors`; its fields are prefix, mirrors, "),
        ("registries:\n- mirrors: []", "registries[0] (line 4) lacks `prefix`; write it"),
        ("registries: ghcr.io", "registries (line 3) has a value of the wrong type; write "),
        ("registries:\n- prefix: ghcr.io\n  mirrors: [mirror.corp]", "registries[0].mirrors[0] (line 5) has a value of the wrong type"),
        ("registries: [{prefix: ghcr.io, mirrorOnly: perhaps}]", "registries[0].mirrorOnly (line 3) is no YAML of this format"),
        ("allowed: {a: b}", "allowed (line 3) has a value of the wrong type"),
        ("dial: {listed: [10.0.0.0/8, 10.0.0.0/99]}", "dial.listed[1]: \"10.0.0.0/99\" is neither host, address nor range; write "),
        ("allowed: [ghcr.io, kong]", "allowed[1]: \"kong\": \"kong\" is no registry; write host or host:port"),
        ("registries: [{prefix: ghcr.io/A}]", "registries[0].prefix: \"ghcr.io/A\": repository \"A\" has upper-case letters"),
        ("registries: [{prefix: ghcr.io}, {prefix: GHCR.io/}]", "registries[1].prefix: registries[0] has it too; merge the two"),
        (
            "registries: [{prefix: ghcr.io, mirrors: [{location: m.corp}, {location: hub}]}]",
            "registries[0].mirrors[1].location: \"hub\": \"hub\" is no registry",
        ),
        ("registries: [{prefix: ghcr.io, mirrorOnly: true}]", "registries[0].mirrorOnly: there is no mirror to ask instead; add one"),
        ("registries: [{prefix: ghcr.io, ca: x}]", "registries[0].ca: it holds no certificate in PEM form; give the CA's certificate"),
        ("registries: [{prefix: ghcr.io, ca: x, caFile: y}]", "registries[0].caFile: there is `ca` too; leave one of them"),
        (
            "registries: [{prefix: a.corp/x, insecure: true}, {prefix: b.corp, mirrors: [{location: a.corp/y, insecure: false}]}]",
            "registries[1].mirrors[0].insecure: registries[0].insecure says the opposite of a.corp; plain HTTP is a matter of the host",
        ),
        ("proxies: {https: '::'}", "proxies.https: it is no URL; write http://host:port"),
        ("allowed: [", "is no YAML of this format"),
    ] {
        assert!(wrong(body).contains(expected), "{body}: {}", wrong(body));
    }
    let root = tempfile::tempdir().unwrap();
    let of = |text: &str| in_directory(root.path(), text).unwrap_err().to_string();
    assert_eq!(of("apiVersion: v1\nkind: Registries\n"), "apiVersion: it is \"v1\"; write weir.dev/v1alpha1");
    assert_eq!(of("apiVersion: weir.dev/v1alpha1\nkind: Secret\n"), "kind: it is \"Secret\"; write Registries");
    assert!(of("kind: Registries\n").contains("lacks `apiVersion`"));
    let text = of(&format!("{HEAD}registries: [{{prefix: ghcr.io, caFile: none.pem}}]"));
    assert!(text.starts_with("registries[0].caFile: ") && text.contains("none.pem: it cannot be read"), "{text}");
}

#[test]
fn files_that_are_none() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(read(&root.path().join("none")).unwrap_err().problem, Problem::Unreadable(_)));
    let path = root.path().join("file");
    fs::write(&path, b"\xff\xfe").unwrap();
    assert_eq!(read(&path).unwrap_err().problem, Problem::NotText);
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(read(&path).unwrap_err().problem, Problem::TooLarge);
    // A reference that grows.
    let bomb = format!("{HEAD}allowed: &a [x, x, x, x, x, x, x, x, x]\nregistries: [&b [*a, *a, *a, *a], &c [*b, *b, *b, *b], *c, *c]\n");
    fs::write(&path, bomb).unwrap();
    assert!(read(&path).is_err());
}

#[test]
fn passwords_are_not_told() {
    for body in [
        "proxies: http://user:hunter2@proxy",
        "proxies: {https: ['http://user:hunter2@proxy']}",
        "proxies: {https: 'http://user:hunter2@'}",
        "proxies: {https: 'http://user:hunter2@proxy\n",
        "proxies: {http: !!int 'hunter2'}",
        "hunter2",
        "- hunter2",
    ] {
        let text = wrong(body);
        assert!(!text.contains("hunter2"), "{body}: {text}");
        assert!(!format!("{:?}", parse(body).unwrap_err()).contains("hunter2"));
    }
    let found = parse("proxies: {https: 'http://user:hunter2@proxy'}").unwrap();
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn the_documentation_is_right() {
    let text = include_str!("../../../../../docs/registries.md");
    let example = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("corp.pem"), pem()).unwrap();
    let all = in_directory(root.path(), example).unwrap().registries(Registries::default());
    assert_eq!((all.rules.len(), all.insecure.as_slice()), (2, &["cache.corp".to_owned()][..]));
    assert!(Puller::new(all).is_ok());
}
