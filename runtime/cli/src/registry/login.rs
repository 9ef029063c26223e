//! Credentials as `docker login` leaves them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use weir_host::oci::{Credentials, CredentialsError, DockerConfig, Reference, docker_config};

use super::helper;
use crate::exit::Failure;

/// What Docker's files call Docker Hub.
const DOCKER_HUB: [&str; 3] = ["https://index.docker.io/v1/", "index.docker.io", "docker.io"];

/// Where credentials are looked for when no file is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Where Docker and podman keep them.
    Docker,
    /// Nowhere.
    Nowhere,
}

/// A docker config, if there is one.
pub(super) struct Login(Option<Config>);

struct Config {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Whether somebody named it. One that was only found need not hold credentials.
    named: bool,
    helpers: Helpers,
}

/// Programs that hold the credentials.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Helpers {
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

impl Login {
    pub(super) fn find(named: Option<&Path>, lookup: Lookup) -> Result<Self, Failure> {
        if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
            return Config::read(path, true).map(|config| Self(Some(config)));
        }
        match lookup {
            Lookup::Nowhere => Ok(Self(None)),
            Lookup::Docker => {
                let found = places(|name| std::env::var_os(name)).into_iter().find(|path| path.is_file());
                found.map(|path| Config::read(&path, false)).transpose().map(Self)
            }
        }
    }

    pub(super) fn of(&self, reference: &Reference) -> Result<Credentials, Failure> {
        let Some(config) = &self.0 else { return Ok(Credentials::Anonymous) };
        match config.of(reference) {
            Ok(found) => Ok(found.unwrap_or_default()),
            Err(problem) => Err(Failure::usage(format!("docker config {}: {problem}", config.path.display()))),
        }
    }

    /// What a mirror is shown, as the puller asks for it.
    pub(super) fn of_mirror(&self, mirror: &Reference) -> Result<Credentials, CredentialsError> {
        let place = format!("{}/{}", mirror.registry(), mirror.repository());
        match self.0.as_ref().map_or(Ok(None), |config| config.of(mirror)) {
            Ok(Some(credentials)) => Ok(credentials),
            Ok(None) => Err(CredentialsError::NoEntry { place, keys: "other places".to_owned() }),
            Err(Problem::Config(error)) => Err(error),
            Err(Problem::Helper(_)) => {
                Err(CredentialsError::Malformed { key: place, problem: "needs a credential helper, which fails; run it by hand" })
            }
        }
    }
}

/// Why a docker config gives nothing.
#[derive(Debug)]
enum Problem {
    Config(CredentialsError),
    Helper(helper::Problem),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Helper(problem) => problem.fmt(f),
        }
    }
}

impl Config {
    fn read(path: &Path, named: bool) -> Result<Self, Failure> {
        let bytes = super::read("docker config", path)?;
        // What is wrong with it is said when it is asked for credentials.
        let helpers = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(Self { path: path.to_owned(), bytes, named, helpers })
    }

    /// The credentials for `reference`, if it has some.
    fn of(&self, reference: &Reference) -> Result<Option<Credentials>, Problem> {
        let helper = self.helpers.of(reference.registry());
        if let Some((name, server)) = helper
            && let Some(credentials) = helper::get(name, server).map_err(Problem::Helper)?
        {
            return Ok(Some(credentials));
        }
        match docker_config(DockerConfig::Json, &self.bytes, reference) {
            Ok(credentials) => Ok(Some(credentials)),
            Err(CredentialsError::NoEntry { .. }) => Ok(None),
            // With a helper, Docker leaves entries empty or the whole list away.
            Err(CredentialsError::NoAuths) if !self.named || self.helpers.any() => Ok(None),
            Err(CredentialsError::Malformed { .. }) if helper.is_some() => Ok(None),
            Err(
                error @ (CredentialsError::NoAuths
                | CredentialsError::Malformed { .. }
                | CredentialsError::NotJson { .. }
                | CredentialsError::TooLarge { .. }),
            ) => Err(Problem::Config(error)),
        }
    }
}

impl Helpers {
    fn any(&self) -> bool {
        self.creds_store.is_some() || !self.cred_helpers.is_empty()
    }

    /// The helper for a registry, and what it knows the registry as.
    fn of<'a>(&'a self, registry: &'a str) -> Option<(&'a str, &'a str)> {
        let hub = registry == "docker.io";
        let own = |key: &&String| key.as_str() == registry || (hub && DOCKER_HUB.contains(&key.as_str()));
        let name = self.cred_helpers.keys().find(own).and_then(|key| self.cred_helpers.get(key)).or(self.creds_store.as_ref());
        let server = if hub { DOCKER_HUB.first().copied().unwrap_or(registry) } else { registry };
        name.filter(|name| !name.is_empty()).map(|name| (name.as_str(), server))
    }
}

/// Docker's file, else podman's. Whoever moves Docker's means no other.
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = given("DOCKER_CONFIG") {
        return vec![dir.join("config.json")];
    }
    let docker = given("HOME").map(|home| home.join(".docker/config.json"));
    let podman = given("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json"));
    docker.into_iter().chain(podman).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, named: bool) -> Config {
        Config {
            path: "config.json".into(),
            bytes: text.as_bytes().to_vec(),
            named,
            helpers: serde_json::from_str(text).unwrap_or_default(),
        }
    }

    fn reference(text: &str) -> Reference {
        Reference::parse(text).expect("a reference")
    }

    #[test]
    fn files_are_looked_for_where_tools_leave_them() {
        let found = |pairs: &[(&str, &str)]| {
            places(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        let home = [("HOME", "/home/a"), ("XDG_RUNTIME_DIR", "/run/user/1")];
        assert_eq!(found(&home), ["/home/a/.docker/config.json", "/run/user/1/containers/auth.json"]);
        assert_eq!(found(&[home[0], ("DOCKER_CONFIG", "/d")]), ["/d/config.json"]);
        assert_eq!(found(&[home[0], ("DOCKER_CONFIG", "")]), ["/home/a/.docker/config.json"]);
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn helpers_are_chosen_as_docker_does() {
        let helpers: Helpers = serde_json::from_str(
            r#"{"credHelpers": {"ghcr.io": "gh", "localhost:5000": "", "index.docker.io": "hub"}, "credsStore": "desktop"}"#,
        )
        .expect("a config");
        assert_eq!(helpers.of("ghcr.io"), Some(("gh", "ghcr.io")));
        assert_eq!(helpers.of("quay.io"), Some(("desktop", "quay.io")));
        assert_eq!(helpers.of("docker.io"), Some(("hub", "https://index.docker.io/v1/")));
        assert_eq!(helpers.of("localhost:5000"), None);
        assert_eq!(Helpers::default().of("ghcr.io"), None);
    }

    fn asked(text: &str, named: bool, place: &str) -> Result<Credentials, Failure> {
        Login(Some(config(text, named))).of(&reference(place))
    }

    #[test]
    fn a_config_without_an_entry_means_nobody() {
        let entry = r#"{"auths": {"ghcr.io": {"auth": "dTpw"}}}"#;
        assert_eq!(asked(entry, true, "quay.io/x").ok(), Some(Credentials::Anonymous));
        assert!(matches!(asked(entry, true, "ghcr.io/x"), Ok(Credentials::Basic { username, .. }) if username == "u"));
        assert_eq!(asked("{}", false, "ghcr.io/x").ok(), Some(Credentials::Anonymous));
        // A mirror must not be taken for one that wants nobody.
        let login = Login(Some(config(entry, true)));
        assert!(matches!(login.of_mirror(&reference("quay.io/x")), Err(CredentialsError::NoEntry { .. })));
        assert!(login.of_mirror(&reference("ghcr.io/x")).is_ok());
    }

    #[test]
    fn a_config_that_cannot_be_used_is_named() {
        for text in ["{}", "[", r#"{"auths": {"ghcr.io": {}}}"#] {
            let failure = asked(text, true, "ghcr.io/x").expect_err(text);
            assert!(failure.exit == crate::exit::Exit::Usage && failure.message.starts_with("docker config config.json: "), "{failure}");
        }
    }
}
