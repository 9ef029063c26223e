//! The settings in force, and the files they come from.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use weir_core::{
    hash,
    policy::{Finding, Severity},
};
use weir_host::oci::{
    Puller, Registries, TrustRoot,
    login::{Helpers, Login},
    registries_file, verification_file,
};

use super::{
    current::{Current, Trust},
    flags,
    parts::{Loaded, Looked, Part},
};
use crate::{
    config::Config,
    error::Error,
    health::Health,
    metrics::{Metrics, SettingsFile},
};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// Largest CA bundle or trust root that is read, bytes.
const MOST: u64 = 1 << 20;

/// How registries are reached now. Files that change are read again; one that is broken leaves what was read before in force.
pub struct Live {
    from: From,
    parts: Mutex<Parts>,
    current: RwLock<Arc<Current>>,
    metrics: Arc<Metrics>,
    health: Health,
}

/// Where the settings come from.
struct From {
    flags: Registries,
    cas: Vec<PathBuf>,
    registries: Option<PathBuf>,
    auth: Option<PathBuf>,
    helpers: Helpers,
    verification: Option<PathBuf>,
    root: Option<PathBuf>,
}

struct Parts {
    reach: Part<Reach>,
    login: Part<Option<Login>>,
    trust: Part<Arc<Trust>>,
}

/// How registries are reached, and where their credentials are.
#[derive(PartialEq)]
struct Reach {
    registries: Registries,
    auth: Option<PathBuf>,
}

impl Live {
    /// Reads the settings for the first time.
    ///
    /// # Errors
    /// A file that cannot be used: flag, file, field and cure.
    pub fn start(config: &Config, metrics: Arc<Metrics>, health: Health) -> Result<Self, Error> {
        let helpers = Helpers::below(&config.credential_helpers)
            .map_err(|problem| Error::RegistrySettings { flag: "--credential-helpers", problem })?;
        let from = From {
            flags: flags(config),
            cas: config.registry_cas.clone(),
            registries: config.registries_file.clone(),
            auth: config.registry_auth_file.clone(),
            helpers,
            verification: config.verification_file.clone(),
            root: config.trust_root.clone(),
        };
        let refused = |file: SettingsFile| move |problem| Error::RegistrySettings { flag: file.flag(), problem };
        let reach = Part::new(|| from.reach()).map_err(refused(SettingsFile::Registries))?;
        let login = Part::new(|| from.login(reach.value.auth.as_deref())).map_err(refused(SettingsFile::Auth))?;
        let trust = Part::new(|| from.trust()).map_err(refused(SettingsFile::Verification))?;
        let current = Current::new(reach.value.registries.clone(), login.value.clone(), Arc::clone(&trust.value))?;
        let parts = Parts { reach, login, trust };
        Ok(Self { from, parts: Mutex::new(parts), current: RwLock::new(Arc::new(current)), metrics, health })
    }

    /// What counts now.
    #[must_use]
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing panics under the lock besides an allocation.
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files that cannot be used now, for objects that depend on them. What is wrong with them is told to `own` objects of the operator's
    /// namespace alone: what else is in such a file is nobody else's business.
    #[must_use]
    pub fn findings(&self, own: bool) -> Vec<Finding> {
        let finding = |(file, problem): (SettingsFile, &Option<String>)| {
            let problem = problem.as_deref()?;
            let what = if own { problem } else { "the operator cannot use this file as it is now; whoever runs the operator can mend it" };
            let message = format!("{what}; what was read before stays in force");
            Some(Finding { severity: Severity::Warning, code: file.code().into(), path: file.flag().into(), message })
        };
        self.parts().problems().into_iter().filter_map(finding).collect()
    }

    /// Looks at the files until it is dropped, on every replica. `changed` is called after other settings took over, and when a file breaks or
    /// is mended.
    pub async fn watch(self: Arc<Self>, changed: impl Fn(Changed)) {
        if self.from.is_flags_alone() {
            return;
        }
        loop {
            let this = Arc::clone(&self);
            match tokio::task::spawn_blocking(move || this.look()).await {
                Ok(Some(what)) => changed(what),
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "reading the settings of registries was interrupted"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Looks at the files once. Blocks on the file system.
    pub(super) fn look(&self) -> Option<Changed> {
        let mut parts = self.parts();
        let Parts { reach, login, trust } = &mut *parts;
        let reached = reach.look(|| self.from.reach());
        let logged = login.look(|| self.from.login(reach.value.auth.as_deref()));
        let trusted = trust.look(|| self.from.trust());
        let all = [(SettingsFile::Registries, reached), (SettingsFile::Auth, logged), (SettingsFile::Verification, trusted)];
        if all.iter().any(|(_, looked)| *looked == Looked::Changed) {
            self.swap(&mut parts, reached == Looked::Changed || logged == Looked::Changed);
        }
        self.tell(&all, &parts);
        let is = |which: Looked| all.iter().any(|(_, looked)| *looked == which);
        match (is(Looked::Changed), is(Looked::Broken) || is(Looked::Mended)) {
            (true, _) => Some(Changed::Settings),
            (false, true) => Some(Changed::Problems),
            (false, false) => None,
        }
    }

    fn swap(&self, parts: &mut Parts, anew: bool) {
        let trust = Arc::clone(&parts.trust.value);
        let made = if anew {
            Current::new(parts.reach.value.registries.clone(), parts.login.value.clone(), trust)
        } else {
            Ok(self.current().trusting(trust))
        };
        match made {
            Ok(current) => *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current),
            // Tried when the file was read.
            Err(error) => parts.reach.problem = Some(error.to_string()),
        }
    }

    fn tell(&self, all: &[(SettingsFile, Looked)], parts: &Parts) {
        for (file, looked) in all {
            let flag = file.flag();
            match looked {
                Looked::Same => {}
                Looked::Changed => tracing::info!(flag, "other settings of registries are in force"),
                Looked::Mended => tracing::info!(flag, "the settings of registries can be read again, and are as they were"),
                Looked::Broken => {
                    let problem = parts.problem(*file);
                    tracing::error!(flag, problem, "changed settings of registries cannot be used; those in force stay");
                }
            }
        }
        let mut lines = Vec::new();
        for (file, problem) in parts.problems() {
            if !self.from.has(file, &parts.reach.value) {
                continue;
            }
            self.metrics.settings.is_valid(file, problem.is_none());
            lines.push((file.flag().to_owned(), problem.clone()));
        }
        for (file, looked) in all {
            match looked {
                Looked::Same => {}
                Looked::Changed | Looked::Mended => self.metrics.settings.loaded(*file, true),
                Looked::Broken => self.metrics.settings.loaded(*file, false),
            }
        }
        self.health.settings(lines);
    }
}

/// What a look at the files found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// Other settings are in force.
    Settings,
    /// Only what is told about them is another.
    Problems,
}

impl Parts {
    fn problems(&self) -> [(SettingsFile, &Option<String>); 3] {
        [
            (SettingsFile::Registries, &self.reach.problem),
            (SettingsFile::Auth, &self.login.problem),
            (SettingsFile::Verification, &self.trust.problem),
        ]
    }

    fn problem(&self, file: SettingsFile) -> &str {
        let found = self.problems().into_iter().find(|(other, _)| *other == file);
        found.and_then(|(_, problem)| problem.as_deref()).unwrap_or_default()
    }
}

impl From {
    fn is_flags_alone(&self) -> bool {
        self.cas.is_empty() && self.registries.is_none() && self.auth.is_none() && self.verification.is_none() && self.root.is_none()
    }

    /// Whether there is a file of this kind.
    fn has(&self, file: SettingsFile, reach: &Reach) -> bool {
        match file {
            SettingsFile::Registries => self.registries.is_some() || !self.cas.is_empty(),
            SettingsFile::Auth => self.auth.is_some() || reach.auth.is_some(),
            SettingsFile::Verification => self.verification.is_some() || self.root.is_some(),
        }
    }

    fn reach(&self) -> Loaded<Reach> {
        let mut files: Vec<PathBuf> = self.registries.iter().chain(&self.cas).cloned().collect();
        let mut registries = self.flags.clone();
        for path in &self.cas {
            registries.ca_bundles.push(bounded(path).map_err(|problem| format!("--registry-ca {problem}"))?);
        }
        let mut auth = None;
        if let Some(path) = &self.registries {
            let file = registries_file::read(path).map_err(|error| error.to_string())?;
            files.extend(file.files().iter().cloned());
            auth = file.auth_file().map(Path::to_owned);
            registries = file.registries(registries);
        }
        // Whatever else is wrong is found now, and not when it takes over.
        Puller::new(registries.clone()).map_err(|error| error.to_string())?;
        Ok((Reach { registries, auth }, files))
    }

    fn login(&self, named: Option<&Path>) -> Loaded<Option<Login>> {
        let Some(path) = self.auth.as_deref().or(named) else { return Ok((None, Vec::new())) };
        let login = Login::read(path, true, self.helpers.clone()).map_err(|error| error.to_string())?;
        login.check().map_err(|error| error.to_string())?;
        Ok((Some(login), vec![path.to_owned()]))
    }

    fn trust(&self) -> Loaded<Arc<Trust>> {
        let mut files: Vec<PathBuf> = self.verification.iter().chain(&self.root).cloned().collect();
        let list = match &self.verification {
            Some(path) => verification_file::read(path).map_err(|error| error.to_string())?,
            None => verification_file::File::default(),
        };
        files.extend(list.files().iter().cloned());
        let root = match &self.root {
            Some(path) => {
                let bytes = bounded(path).map_err(|problem| format!("--trust-root {problem}"))?;
                let root = TrustRoot::parse(&bytes).map_err(|error| format!("--trust-root {}: {error}", path.display()))?;
                Some((root, hash::digest(&bytes)))
            }
            None if list.wants_identities() => {
                return Err(
                    "it asks for keyless signatures, and nothing says whose certificates count: name a trusted_root.json with --trust-root"
                        .into(),
                );
            }
            None => None,
        };
        Ok((Arc::new(Trust { list, root }), files))
    }
}

/// A file of at most [`MOST`] bytes.
fn bounded(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let failed = |why: String| format!("{}: {why}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MOST { Err(failed(format!("it has more than {} MiB", MOST >> 20))) } else { Ok(bytes) }
}
