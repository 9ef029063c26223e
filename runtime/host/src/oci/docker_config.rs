//! Credentials from Docker's files, as Kubernetes keeps them in pull secrets.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Reference,
    credentials::{Credentials, Secret},
    reference::canonical_host,
    text,
};

/// Largest file, bytes: what a Kubernetes Secret can hold.
pub const MAX_CONFIG: usize = 1 << 20;
/// Docker pads, other tools do not.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// Which of Docker's two files it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DockerConfig {
    /// `.dockerconfigjson`: registries below `auths`.
    Json,
    /// `.dockercfg`: registries at the top.
    Legacy,
}

/// Why a file gives no credentials. No text of the file besides names of registries is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// Larger than any.
    #[error("the docker config has {found} bytes, at most {MAX_CONFIG} are allowed")]
    TooLarge {
        /// Bytes found.
        found: usize,
    },
    /// Not a JSON object.
    #[error("the docker config is no JSON object (line {line}); make it with `kubectl create secret docker-registry`")]
    NotJson {
        /// Where.
        line: usize,
    },
    /// No `auths`.
    #[error("the docker config has no `auths`; make it with `kubectl create secret docker-registry`")]
    NoAuths,
    /// The entry for the registry is of no use.
    #[error("the docker config's entry \"{}\" {problem}", text::name(.key))]
    Malformed {
        /// Its key.
        key: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Nothing for this registry. The caller decides whether to go on without credentials.
    #[error("the docker config has no entry for {place}; it has entries for: {keys}")]
    NoEntry {
        /// Registry and repository.
        place: String,
        /// The keys there are.
        keys: String,
    },
}

/// Credentials for `reference` out of a docker config. Among the keys that match, the one with the longest path wins, then the one
/// without wildcards.
///
/// # Errors
/// See [`CredentialsError`].
pub fn docker_config(kind: DockerConfig, bytes: &[u8], reference: &Reference) -> Result<Credentials, CredentialsError> {
    if bytes.len() > MAX_CONFIG {
        return Err(CredentialsError::TooLarge { found: bytes.len() });
    }
    // serde_json's text quotes the input, which is secret; the line is enough.
    let mut object: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| CredentialsError::NotJson { line: e.line() })?;
    let auths = match kind {
        DockerConfig::Legacy => object,
        DockerConfig::Json => match object.remove("auths") {
            Some(Value::Object(auths)) => auths,
            Some(_) | None => return Err(CredentialsError::NoAuths),
        },
    };
    let best = auths.iter().filter_map(|(key, entry)| Some((Key::parse(key)?.rank(reference)?, key, entry))).max_by_key(|best| best.0);
    let Some((_, key, entry)) = best else {
        let keys = auths.keys().take(8).map(|key| text::name(key)).collect::<Vec<_>>();
        let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
        return Err(CredentialsError::NoEntry { place: reference.place(), keys });
    };
    credentials(entry).map_err(|problem| CredentialsError::Malformed { key: key.clone(), problem })
}

/// Which registries and repositories an entry is for.
struct Key<'a> {
    host: String,
    port: Option<&'a str>,
    path: &'a str,
}

/// How well a key fits: path first, then no wildcards, then the longer host.
type Rank = (usize, bool, usize);

impl<'a> Key<'a> {
    fn parse(key: &'a str) -> Option<Self> {
        let bare = key.split_once("://").map_or(key, |(_, rest)| rest);
        let (authority, path) = bare.split_once('/').unwrap_or((bare, ""));
        let path = path.trim_end_matches('/');
        // `https://host/v1/` and `/v2/` name the API, not a repository.
        let path = ["v1", "v2"]
            .iter()
            .find_map(|api| path.strip_prefix(api).filter(|rest| rest.is_empty() || rest.starts_with('/')))
            .unwrap_or(path);
        let (host, port) = split_port(authority);
        (!host.is_empty()).then(|| Self { host: canonical_host(host), port, path: path.trim_start_matches('/') })
    }

    fn rank(&self, reference: &Reference) -> Option<Rank> {
        let (host, port) = split_port(reference.registry());
        let same_path = self.path.is_empty()
            || reference.repository().strip_prefix(self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !same_path || self.port != port || !same_host(&self.host, host) {
            return None;
        }
        Some((self.path.len(), !self.host.contains('*'), self.host.len()))
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

/// As the kubelet: a `*` stands for a part of one label, never for a dot.
fn same_host(pattern: &str, host: &str) -> bool {
    pattern.split('.').count() == host.split('.').count()
        && pattern.split('.').zip(host.split('.')).all(|(pattern, label)| glob(pattern, label))
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[derive(Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    auth: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

fn credentials(entry: &Value) -> Result<Credentials, &'static str> {
    let entry = Entry::deserialize(entry).map_err(|_| "is malformed: its fields are texts")?;
    let given = |field: Option<String>| field.filter(|text| !text.is_empty());
    if let Some(token) = given(entry.registrytoken) {
        return Ok(Credentials::RegistryToken { token: Secret::new(token) });
    }
    if let Some(token) = given(entry.identitytoken) {
        return Ok(Credentials::IdentityToken { token: Secret::new(token) });
    }
    // As Docker and the kubelet: `auth` wins over the two fields.
    if let Some(auth) = given(entry.auth) {
        return basic(&auth);
    }
    match (given(entry.username), given(entry.password)) {
        (Some(username), Some(password)) => Ok(Credentials::Basic { username, password: Secret::new(password) }),
        (Some(_), None) => Err("has a user name and no password"),
        (None, Some(_)) => Err("has a password and no user name"),
        (None, None) => Err("has no credentials; a credential helper may hold them, which a Secret cannot carry: log in without one"),
    }
}

fn basic(auth: &str) -> Result<Credentials, &'static str> {
    let bytes = BASE64.decode(auth.trim()).map_err(|_| "is malformed: `auth` is no base64")?;
    let text = String::from_utf8(bytes).map_err(|_| "is malformed: `auth` is no text")?;
    let (username, password) = text.split_once(':').ok_or("is malformed: `auth` is not user:password in base64")?;
    // Old versions of Docker pad the password with zero bytes.
    let password = password.trim_matches('\0');
    if username.is_empty() || password.is_empty() {
        return Err("is malformed: `auth` has an empty user name or password");
    }
    Ok(Credentials::Basic { username: username.to_owned(), password: Secret::new(password) })
}
