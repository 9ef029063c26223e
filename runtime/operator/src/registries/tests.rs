use std::{fs, path::Path};

use super::{parts::Part, *};
use crate::{Error, health::Health, metrics::Metrics};

use std::sync::Arc;

use weir_host::{
    layer::Counters,
    oci::{Credentials, Reference},
};

#[test]
fn hosts_are_listed_without_port_and_path() {
    for (entry, expected) in
        [("a.example.com:5000/b", "a.example.com"), ("127.0.0.1:5000", "127.0.0.1"), ("[::1]:5000/x", "::1"), ("a", "a")]
    {
        assert_eq!(host(entry), expected);
    }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

/// Files of a test, and what an operator makes of them.
struct Place {
    root: tempfile::TempDir,
    metrics: Arc<Metrics>,
}

const REGISTRIES: &str = "apiVersion: weir.dev/v1alpha1\nkind: Registries\n";
const VERIFICATION: &str = "apiVersion: weir.dev/v1alpha1\nkind: Verification\n";
/// Of nobody.
const KEY: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";

impl Place {
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap(), metrics: Arc::new(Metrics::new(Arc::new(Counters::default()))) };
        place.write("registries.yaml", &format!("{REGISTRIES}authFile: auth.json\n"));
        place.write("auth.json", r#"{"auths": {"ghcr.io": {"username": "u", "password": "one"}}}"#);
        place.write("cosign.pub", KEY);
        place.write(
            "verification.yaml",
            &format!("{VERIFICATION}entries: [{{prefix: ghcr.io/acme, anyOf: [{{publicKey: {{file: cosign.pub}}}}]}}]\n"),
        );
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn config(&self) -> Config {
        Config {
            registries_file: Some(self.path("registries.yaml")),
            verification_file: Some(self.path("verification.yaml")),
            ..crate::config::tests::config()
        }
    }

    fn start(&self) -> Result<Live, Error> {
        Live::start(&self.config(), Arc::clone(&self.metrics), Health::default())
    }

    fn metric(&self, series: &str) -> String {
        let text = self.metrics.encode();
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned)).unwrap_or_default()
    }
}

#[test]
fn a_file_that_is_broken_at_the_start_is_a_refusal_that_names_flag_and_file() {
    for (name, text, flag) in [
        ("registries.yaml", "registries: [", "--registries-file"),
        ("auth.json", "pssst", "--registry-auth-file"),
        ("verification.yaml", "kind: Registries", "--verification-file"),
        ("cosign.pub", "no key", "--verification-file"),
    ] {
        let place = Place::new();
        place.write(name, text);
        let error = place.start().err().unwrap().to_string();
        let file = if name == "cosign.pub" { "publicKey" } else { name };
        assert!(error.starts_with(flag) && error.contains(file) && !error.contains("pssst"), "{error}");
    }
    let place = Place::new();
    fs::remove_file(place.path("auth.json")).unwrap();
    assert!(place.start().err().unwrap().to_string().contains("auth.json"));
}

#[test]
fn a_file_that_changes_counts_and_one_that_breaks_leaves_what_was() {
    let place = Place::new();
    let live = place.start().unwrap();
    let policy = reference("ghcr.io/acme/p:1");
    let wanted = live.current().wanted(&policy).unwrap();
    assert_eq!(live.current().wanted(&reference("ghcr.io/other:1")), None);
    assert!(live.findings(true).is_empty());
    assert_eq!(live.look(), None);
    assert_eq!(place.metric("weir_settings_file_valid{file=\"Verification\"}"), "1");

    // Broken: nothing is asked for less, and it is told once.
    place.write("verification.yaml", &format!("{VERIFICATION}entries: [{{prefix: ghcr.io/acme}}]\n"));
    assert_eq!(live.look(), Some(Changed::Problems));
    assert_eq!(live.look(), None);
    assert_eq!(live.current().wanted(&policy), Some(wanted.clone()));
    let [finding] = live.findings(true).try_into().unwrap();
    assert_eq!((finding.code.as_str(), finding.path.as_str()), ("VerificationFileUnusable", "--verification-file"));
    assert!(finding.message.contains("entries[0]") && finding.message.contains("stays in force"), "{}", finding.message);
    let [others] = live.findings(false).try_into().unwrap();
    assert!(others.code == finding.code && !others.message.contains("entries"), "{}", others.message);
    assert_eq!(place.metric("weir_settings_file_valid{file=\"Verification\"}"), "0");
    assert_eq!(place.metric("weir_settings_file_loads_total{file=\"Verification\",outcome=\"Failed\"}"), "1");

    // Others are read meanwhile.
    place.write("registries.yaml", &format!("{REGISTRIES}authFile: auth.json\nallowed: [ghcr.io]\n"));
    assert_eq!(live.look(), Some(Changed::Settings));
    assert_eq!(live.current().registries.allowed, ["ghcr.io"]);
    assert_eq!(live.current().wanted(&policy), Some(wanted));

    place.write("verification.yaml", &format!("{VERIFICATION}entries: [{{unsigned: true}}]\n"));
    assert_eq!(live.look(), Some(Changed::Settings));
    assert_eq!(live.current().wanted(&policy), None);
    assert!(live.findings(true).is_empty());
    assert_eq!(place.metric("weir_settings_file_valid{file=\"Verification\"}"), "1");
}

#[test]
fn a_key_beside_the_list_is_a_part_of_it() {
    let place = Place::new();
    let live = place.start().unwrap();
    assert_eq!(live.look(), None);
    place.write("cosign.pub", "no key");
    assert_eq!(live.look(), Some(Changed::Problems));
    place.write("cosign.pub", KEY);
    assert_eq!(live.look(), Some(Changed::Problems), "it is mended");
    assert_eq!((live.look(), live.findings(true).len()), (None, 0));
}

#[tokio::test]
async fn the_operators_credentials_are_for_what_names_none_and_are_read_again() {
    let place = Place::new();
    let live = place.start().unwrap();
    let ask = async |given: Credentials| live.current().credentials(&reference("ghcr.io/a:1"), &given).await.unwrap();
    let basic = |password: &str| Credentials::Basic { username: "u".into(), password: weir_host::oci::Secret::new(password) };
    assert_eq!(ask(Credentials::Anonymous).await, basic("one"));
    assert_eq!(ask(basic("own")).await, basic("own"));
    place.write("auth.json", r#"{"auths": {"ghcr.io": {"username": "u", "password": "two"}}}"#);
    assert_eq!(live.look(), Some(Changed::Settings));
    assert_eq!(ask(Credentials::Anonymous).await, basic("two"));
    let elsewhere = live.current().credentials(&reference("quay.io/a:1"), &Credentials::Anonymous).await.unwrap();
    assert_eq!(elsewhere, Credentials::Anonymous);
}

#[test]
fn what_the_cluster_holds_is_refused_unless_a_host_is_named() {
    let config = Config {
        cluster_ranges: vec!["10.96.0.0/12".into()],
        allowed_registries: vec!["registry.kube-system.svc:5000/plugins".into()],
        ..crate::config::tests::config()
    };
    let registries = flags(&config);
    assert_eq!(registries.dial.refused, ["10.96.0.0/12"]);
    assert_eq!(registries.dial.listed, ["registry.kube-system.svc"]);
    assert!(!registries.dial.loopback);
    let broken = Config { cluster_ranges: vec!["10.96.0.0/64".into()], ..crate::config::tests::config() };
    let metrics = Arc::new(Metrics::new(Arc::new(Counters::default())));
    let error = Live::start(&broken, metrics, Health::default()).err().unwrap().to_string();
    assert!(error.contains("10.96.0.0/64"), "{error}");
}

#[test]
fn keyless_signers_need_a_trust_root_at_the_start() {
    let place = Place::new();
    place.write("verification.yaml", &format!("{VERIFICATION}entries: [{{anyOf: [{{keyless: {{issuer: i, subject: s}}}}]}}]\n"));
    let error = place.start().err().unwrap().to_string();
    assert!(error.starts_with("--verification-file") && error.contains("--trust-root"), "{error}");
}

#[test]
fn a_broken_file_that_names_another_is_tried_again_without_a_change_of_its_own() {
    let place = Place::new();
    let other = place.path("other");
    let load = |other: &Path| -> Result<(String, Vec<std::path::PathBuf>), String> {
        let text = fs::read_to_string(other).map_err(|error| error.to_string())?;
        Ok((text, vec![place.path("registries.yaml")]))
    };
    fs::write(&other, "1").unwrap();
    let mut part = Part::new(|| load(&other)).unwrap();
    fs::remove_file(&other).unwrap();
    place.write("registries.yaml", "changed");
    assert_eq!(part.look(|| load(&other)), parts::Looked::Broken);
    fs::write(&other, "2").unwrap();
    assert_eq!(part.look(|| load(&other)), parts::Looked::Changed);
    assert_eq!((part.value.as_str(), &part.problem), ("2", &None));
}
