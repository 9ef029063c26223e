//! Credentials as `docker login` leaves them: entries of a file, or programs that hold them.

mod helper;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value};

pub use super::yaml_file::FileError;
use super::{
    Credentials, CredentialsError, DockerConfig, Reference, docker_config,
    reference::{below, prefix},
    text,
    yaml_file::{self, Problem},
};

/// What Docker's files call Docker Hub.
const DOCKER_HUB: [&str; 3] = ["https://index.docker.io/v1/", "index.docker.io", "docker.io"];

/// Which credential helpers are run. They are programs, with the rights of whoever runs this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Helpers {
    /// All that the file names.
    All,
    /// Those for repositories below one of these prefixes of `registry/repository`.
    Below(Vec<String>),
}

impl Helpers {
    /// Prefixes as somebody wrote them.
    ///
    /// # Errors
    /// The one that is none, and why.
    pub fn below(prefixes: &[String]) -> Result<Self, String> {
        let read = |text: &String| prefix(text).map_err(|problem| format!("\"{}\": {problem}", text::name(text)));
        prefixes.iter().map(read).collect::<Result<_, _>>().map(Self::Below)
    }

    fn allow(&self, reference: &Reference) -> bool {
        match self {
            Self::All => true,
            Self::Below(prefixes) => {
                let place = reference.place();
                prefixes.iter().any(|prefix| below(&place, prefix).is_some())
            }
        }
    }
}

/// A docker config. Has no Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Whether somebody named it. One that was only found need not hold credentials.
    named: bool,
    programs: Programs,
    helpers: Helpers,
}

/// Programs that hold the credentials.
#[derive(Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Programs {
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

/// Why a docker config gives nothing; names the file. No value of it is in any text.
#[derive(Debug)]
pub struct LoginError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Config(CredentialsError),
    Helper(helper::Problem),
    /// Only this program has credentials for this place, and may not be run.
    NotRun {
        program: String,
        place: String,
    },
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "docker config {}: ", self.path.display())?;
        match &self.why {
            Why::Config(error) => error.fmt(f),
            Why::Helper(problem) => problem.fmt(f),
            Why::NotRun { program, place } => write!(
                f,
                "the credential helper docker-credential-{} for {place} is not run, since no prefix that helpers are allowed for is one of it; \
                 allow it, or put the credentials into the file",
                text::name(program)
            ),
        }
    }
}

impl std::error::Error for LoginError {}

impl Login {
    /// Reads a docker config. What is wrong with its content is said when it is asked for credentials, or by [`Login::check`]. Blocks on
    /// the file system.
    ///
    /// # Errors
    /// Names the file.
    pub fn read(path: &Path, named: bool, helpers: Helpers) -> Result<Self, FileError> {
        let bytes = yaml_file::bounded(path).map_err(|problem| FileError { path: path.to_owned(), problem })?;
        let programs = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(Self { path: path.to_owned(), bytes, named, programs, helpers })
    }

    /// Whether it is a docker config at all.
    ///
    /// # Errors
    /// Names the file, the line, and the cure.
    pub fn check(&self) -> Result<(), FileError> {
        let wrong = |problem: String| FileError {
            path: self.path.clone(),
            problem: Problem::Value { field: "the docker config".to_owned(), problem },
        };
        let object: Map<String, Value> = serde_json::from_slice(&self.bytes)
            .map_err(|error| wrong(format!("it is no JSON object (line {}); make it with `docker login`", error.line())))?;
        match object.get("auths") {
            Some(Value::Object(_)) => Ok(()),
            None if self.programs.any() => Ok(()),
            Some(_) | None => Err(wrong("it has no `auths`; make it with `docker login`".to_owned())),
        }
    }

    /// The credentials for a repository, if it has some. Runs a credential helper where the file names one, which may take a minute.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub fn of(&self, reference: &Reference) -> Result<Option<Credentials>, LoginError> {
        self.look(reference).map_err(|why| LoginError { path: self.path.clone(), why })
    }

    /// What a mirror is shown, as the puller asks for it.
    ///
    /// # Errors
    /// [`CredentialsError::NoEntry`] where it has none, so that a mirror is not taken for one that wants nobody.
    pub fn of_mirror(&self, mirror: &Reference) -> Result<Credentials, CredentialsError> {
        let broken = |problem| Err(CredentialsError::Malformed { key: mirror.place(), problem });
        match self.look(mirror) {
            Ok(Some(credentials)) => Ok(credentials),
            Ok(None) => Err(CredentialsError::NoEntry { place: mirror.place(), keys: "other places".to_owned() }),
            Err(Why::Config(error)) => Err(error),
            Err(Why::Helper(_)) => broken("needs a credential helper, which fails; run it by hand"),
            Err(Why::NotRun { .. }) => broken("needs a credential helper, which may not be run for it"),
        }
    }

    fn look(&self, reference: &Reference) -> Result<Option<Credentials>, Why> {
        let program = self.programs.of(reference.registry());
        let runs = program.filter(|_| self.helpers.allow(reference));
        if let Some((name, server, _)) = runs
            && let Some(credentials) = helper::get(name, server).map_err(Why::Helper)?
        {
            return Ok(Some(credentials));
        }
        match docker_config(DockerConfig::Json, &self.bytes, reference) {
            Ok(credentials) => return Ok(Some(credentials)),
            Err(CredentialsError::NoEntry { .. }) => {}
            // With a helper, Docker leaves entries empty or the whole list away.
            Err(CredentialsError::NoAuths) if !self.named || self.programs.any() => {}
            Err(CredentialsError::Malformed { .. }) if program.is_some() => {}
            Err(
                error @ (CredentialsError::NoAuths
                | CredentialsError::Malformed { .. }
                | CredentialsError::NotJson { .. }
                | CredentialsError::TooLarge { .. }),
            ) => return Err(Why::Config(error)),
        }
        match program {
            // A store is for all registries, and most of them want nobody.
            Some((name, _, true)) if runs.is_none() => Err(Why::NotRun { program: name.to_owned(), place: reference.place() }),
            Some(_) | None => Ok(None),
        }
    }
}

impl Programs {
    fn any(&self) -> bool {
        self.creds_store.is_some() || !self.cred_helpers.is_empty()
    }

    /// The helper for a registry, what it knows the registry as, and whether it is for this registry alone.
    fn of<'a>(&'a self, registry: &'a str) -> Option<(&'a str, &'a str, bool)> {
        let hub = registry == "docker.io";
        let is_own = |key: &&String| key.as_str() == registry || (hub && DOCKER_HUB.contains(&key.as_str()));
        let own = self.cred_helpers.iter().find(|(key, _)| is_own(key)).map(|(_, name)| (name, true));
        let (name, only) = own.or(self.creds_store.as_ref().map(|name| (name, false)))?;
        let server = if hub { DOCKER_HUB.first().copied().unwrap_or(registry) } else { registry };
        (!name.is_empty()).then_some((name.as_str(), server, only))
    }
}
