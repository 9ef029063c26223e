use super::*;

fn login(text: &str, named: bool, helpers: Helpers) -> Login {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("config.json");
    std::fs::write(&path, text).expect("a file");
    Login { path: "config.json".into(), ..Login::read(&path, named, helpers).expect("a config") }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).expect("a reference")
}

#[test]
fn helpers_are_chosen_as_docker_does() {
    let programs: Programs = serde_json::from_str(
        r#"{"credHelpers": {"ghcr.io": "gh", "localhost:5000": "", "index.docker.io": "hub"}, "credsStore": "desktop"}"#,
    )
    .expect("a config");
    assert_eq!(programs.of("ghcr.io"), Some(("gh", "ghcr.io", true)));
    assert_eq!(programs.of("quay.io"), Some(("desktop", "quay.io", false)));
    assert_eq!(programs.of("docker.io"), Some(("hub", "https://index.docker.io/v1/", true)));
    assert_eq!(programs.of("localhost:5000"), None);
    assert_eq!(Programs::default().of("ghcr.io"), None);
}

#[test]
fn a_config_without_an_entry_means_nobody() {
    let asked = |text: &str, named: bool, place: &str| login(text, named, Helpers::All).of(&reference(place)).ok();
    let entry = r#"{"auths": {"ghcr.io": {"auth": "dTpw"}}}"#;
    assert_eq!(asked(entry, true, "quay.io/x"), Some(None));
    assert!(matches!(asked(entry, true, "ghcr.io/x"), Some(Some(Credentials::Basic { username, .. })) if username == "u"));
    assert_eq!(asked("{}", false, "ghcr.io/x"), Some(None));
    // A mirror must not be taken for one that wants nobody.
    let login = login(entry, true, Helpers::All);
    assert!(matches!(login.of_mirror(&reference("quay.io/x")), Err(CredentialsError::NoEntry { .. })));
    assert!(login.of_mirror(&reference("ghcr.io/x")).is_ok());
}

#[test]
fn a_config_that_cannot_be_used_is_named() {
    for text in ["{}", "[", r#"{"auths": {"ghcr.io": {}}}"#] {
        let error = login(text, true, Helpers::All).of(&reference("ghcr.io/x")).expect_err(text);
        assert!(error.to_string().starts_with("docker config config.json: "), "{error}");
    }
}

#[test]
fn what_is_no_docker_config_is_told_before_anybody_asks_it() {
    for text in ["{}", "[", "pssst", r#"{"auths": []}"#] {
        let error = login(text, true, Helpers::All).check().expect_err(text).to_string();
        assert!(error.starts_with("config.json: the docker config: ") && error.contains("docker login"), "{error}");
        assert!(!error.contains("pssst"), "{error}");
    }
    for text in [r#"{"auths": {}}"#, r#"{"credsStore": "desktop"}"#, r#"{"credHelpers": {"ghcr.io": "gh"}}"#] {
        assert!(login(text, true, Helpers::All).check().is_ok(), "{text}");
    }
}

#[test]
fn helpers_are_run_for_listed_prefixes_only() {
    let below = |prefixes: &[&str]| Helpers::below(&prefixes.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("prefixes");
    // A program of this name is nowhere: whether it was run is seen by what is said.
    let text = r#"{"auths": {"ghcr.io/own": {"auth": "dTpw"}}, "credHelpers": {"ghcr.io": "there-is-none"}, "credsStore": "nor-this"}"#;
    let asked = |helpers: Helpers, place: &str| login(text, true, helpers).of(&reference(place)).map_err(|error| error.to_string());
    let error = asked(Helpers::All, "ghcr.io/acme/a").expect_err("it is run");
    assert!(error.contains("docker-credential-there-is-none cannot be run"), "{error}");
    let error = asked(below(&["ghcr.io/acme"]), "ghcr.io/acme/a").expect_err("it is run");
    assert!(error.contains("cannot be run"), "{error}");
    let error = asked(below(&["ghcr.io/acme"]), "ghcr.io/acmeplus/a").expect_err("nobody has credentials");
    assert!(error.contains("is not run") && error.contains("ghcr.io/acmeplus/a") && error.contains("allow it"), "{error}");
    // What needs no helper goes on, and a store for everything is no reason to refuse what may be public.
    assert!(matches!(asked(below(&[]), "ghcr.io/own/a"), Ok(Some(Credentials::Basic { .. }))));
    assert_eq!(asked(below(&[]), "quay.io/a"), Ok(None));
    assert!(Helpers::below(&["*".to_owned()]).expect_err("no prefix").contains('*'));
}
