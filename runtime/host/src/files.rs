//! Policies from files: a component per slot instead of the built-in one, and settings. A remote plugin may stand for a component.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use weir_core::{
    hash,
    policy::{
        BoxFuture, ConflictResolution, Finding, Identity, KonnectEnv, ObjectHook, PluginPackaging, Policies, Policy, PolicyError, Slot,
        SlotName, object_hook::Hooks,
    },
};

use crate::{
    remote::{Plugin, RemotePolicy, RemoteSlot},
    wasm::{Builtin, Limits, LoadError, Wasm, WasmSlot},
};

/// One byte more than the host takes: the host says what is too large.
const MAX_COMPONENT: u64 = (32 << 20) + 1;
/// Largest settings file, bytes.
const MAX_SETTINGS: u64 = 64 << 10;

/// Which files stand for which slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Components.
    pub policies: BTreeMap<SlotName, PathBuf>,
    /// Settings documents, YAML or JSON.
    pub settings: BTreeMap<SlotName, PathBuf>,
}

/// Policies that are ready, and what is wrong with the others.
pub struct Loaded {
    /// One per slot.
    pub policies: Policies,
    /// What is no usable policy. Each still stands for its slot, as a policy that always fails.
    pub unusable: Vec<Unusable>,
}

/// What is no usable policy for its slot.
#[derive(Debug)]
pub struct Unusable {
    /// Slot.
    pub slot: SlotName,
    /// Where it is from.
    pub origin: Origin,
    /// Why.
    pub error: PolicyError,
}

/// Where a policy is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A component in this file.
    File(PathBuf),
    /// The remote plugin of this name.
    Remote(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Remote(name) => write!(f, "remote:{name}"),
        }
    }
}

/// What makes the files useless as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A settings file is no document, or too large.
    #[error("{}: {problem}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Where and why.
        problem: String,
    },
    /// A policy refuses its settings.
    #[error("--settings {slot}: the policy refuses them: {}", lines(findings))]
    Settings {
        /// Slot.
        slot: SlotName,
        /// What it says.
        findings: Vec<Finding>,
    },
    /// Two files for one slot.
    #[error("{flag} {slot} is there twice: one file per slot")]
    Twice {
        /// The flag.
        flag: &'static str,
        /// Slot.
        slot: SlotName,
    },
    /// A component inside this binary does not load.
    #[error("the built-in {slot} policy does not load: {error}")]
    Builtin {
        /// Slot.
        slot: SlotName,
        /// Why.
        error: PolicyError,
    },
}

/// What a flag says, as a map: one file per slot.
fn by_slot(flag: &'static str, pairs: &[(SlotName, PathBuf)]) -> Result<BTreeMap<SlotName, PathBuf>, Error> {
    let mut map = BTreeMap::new();
    for (slot, path) in pairs {
        if map.insert(*slot, path.clone()).is_some() {
            return Err(Error::Twice { flag, slot: *slot });
        }
    }
    Ok(map)
}

impl Files {
    /// What the flags `--policy` and `--settings` say.
    ///
    /// # Errors
    /// A slot that is named twice.
    pub fn named(policies: &[(SlotName, PathBuf)], settings: &[(SlotName, PathBuf)]) -> Result<Self, Error> {
        Ok(Self { policies: by_slot("--policy", policies)?, settings: by_slot("--settings", settings)? })
    }

    /// All files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.policies.values().chain(self.settings.values()).map(PathBuf::as_path)
    }

    /// Loads the policies of all slots, each call of them within `limits`.
    ///
    /// # Errors
    /// Unreadable files, settings that are refused.
    pub fn load(&self, host: &Wasm, limits: Limits) -> Result<Loaded, Error> {
        self.load_beside(host, limits, &Remotes::new())
    }

    /// As [`Files::load`], where remote plugins answer the slots that no file is named for. Waits for what they say of their settings, within
    /// `limits`; not to be called on a thread of their connections.
    ///
    /// # Errors
    /// As [`Files::load`].
    pub fn load_beside(&self, host: &Wasm, limits: Limits, remotes: &Remotes) -> Result<Loaded, Error> {
        let mut loader = Loader { host, limits, files: self, remotes, unusable: Vec::new() };
        let policies = Policies {
            konnect_env: loader.slot::<KonnectEnv>()?.into(),
            conflict_resolution: loader.slot::<ConflictResolution>()?.into(),
            plugin_packaging: loader.slot::<PluginPackaging>()?.into(),
            object_hooks: loader.hooks()?,
        };
        Ok(Loaded { policies, unusable: loader.unusable })
    }
}

/// The default of slot object-hook, which changes nothing: it stands in for hooks that fail.
///
/// # Errors
/// As for any component inside of this binary.
pub fn default_hook(host: &Wasm, limits: Limits) -> Result<Arc<dyn Policy<ObjectHook>>, Error> {
    let (files, remotes) = (Files::default(), Remotes::new());
    Loader { host, limits, files: &files, remotes: &remotes, unusable: Vec::new() }.slot::<ObjectHook>()
}

/// Which remote plugin answers which slot.
pub type Remotes = BTreeMap<SlotName, Arc<Plugin>>;

struct Loader<'a> {
    host: &'a Wasm,
    limits: Limits,
    files: &'a Files,
    remotes: &'a Remotes,
    unusable: Vec<Unusable>,
}

impl Loader<'_> {
    fn settings<S: Slot>(&self) -> Result<Value, Error> {
        self.files.settings.get(&S::NAME).map_or(Ok(Value::Null), |path| settings(path))
    }

    fn slot<S: Builtin + WasmSlot + RemoteSlot>(&mut self) -> Result<Arc<dyn Policy<S>>, Error> {
        if let Some(path) = self.files.policies.get(&S::NAME) {
            return self.file::<S>(path);
        }
        if let Some(plugin) = self.remotes.get(&S::NAME) {
            return self.remote::<S>(plugin);
        }
        match self.host.builtin::<S>(self.settings::<S>()?, self.limits) {
            Ok(policy) => Ok(policy),
            Err(LoadError::Settings(findings)) => Err(Error::Settings { slot: S::NAME, findings }),
            Err(LoadError::Policy(error)) => Err(Error::Builtin { slot: S::NAME, error }),
        }
    }

    fn remote<S: RemoteSlot>(&mut self, plugin: &Arc<Plugin>) -> Result<Arc<dyn Policy<S>>, Error> {
        let settings = self.settings::<S>()?;
        let loading = RemotePolicy::<S>::load(Arc::clone(plugin), settings.clone(), self.limits);
        match futures::executor::block_on(loading) {
            Ok(policy) => Ok(Arc::new(policy)),
            Err(LoadError::Settings(findings)) => Err(Error::Settings { slot: S::NAME, findings }),
            Err(LoadError::Policy(error)) => {
                let name = plugin.name().to_owned();
                // What stands for a component's bytes: who the plugin says it is.
                let digest = plugin.metadata().map(|metadata| metadata.digest()).unwrap_or_default();
                let broken = Broken::new(format!("remote:{name}"), digest.as_bytes(), &settings, error.clone());
                self.unusable.push(Unusable { slot: S::NAME, origin: Origin::Remote(name), error });
                Ok(Arc::new(broken))
            }
        }
    }

    /// The hook of a file or a remote plugin, if there is one. Settings alone are the default's, which has none and says so.
    fn hooks(&mut self) -> Result<Hooks, Error> {
        let slot = ObjectHook::NAME;
        if !self.files.policies.contains_key(&slot) && !self.files.settings.contains_key(&slot) && !self.remotes.contains_key(&slot) {
            return Ok(Hooks::default());
        }
        let hook = self.slot::<ObjectHook>()?;
        Ok(Hooks::one(hook.identity().source.clone(), hook.into()))
    }

    fn file<S: WasmSlot>(&mut self, path: &Path) -> Result<Arc<dyn Policy<S>>, Error> {
        let settings = self.settings::<S>()?;
        let bytes = read(path, MAX_COMPONENT)?;
        let source = format!("file:{}", path.file_name().unwrap_or_default().to_string_lossy());
        match self.host.load::<S>(&bytes, source.clone(), settings.clone(), self.limits) {
            Ok(policy) => Ok(policy),
            Err(LoadError::Settings(findings)) => Err(Error::Settings { slot: S::NAME, findings }),
            Err(LoadError::Policy(error)) => {
                self.unusable.push(Unusable { slot: S::NAME, origin: Origin::File(path.to_owned()), error: error.clone() });
                Ok(Arc::new(Broken::new(source, &bytes, &settings, error)))
            }
        }
    }
}

/// A settings document, YAML or JSON.
///
/// # Errors
/// A file that cannot be read, is too large, or no document.
pub fn settings(path: &Path) -> Result<Value, Error> {
    let document = |problem: String| Error::Document { path: path.to_owned(), problem };
    let bytes = read(path, MAX_SETTINGS + 1)?;
    if bytes.len() as u64 > MAX_SETTINGS {
        return Err(document(format!("settings are at most {} KiB", MAX_SETTINGS >> 10)));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| document("is not UTF-8 text".into()))?;
    serde_saphyr::from_str(text).map_err(|error| document(error.to_string()))
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(unreadable)?.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn lines(findings: &[Finding]) -> String {
    let line = |f: &Finding| format!("{}: {}", if f.path.is_empty() { "settings" } else { &f.path }, f.message);
    findings.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Stands for a component that could not be loaded: it always fails, in the same way.
#[derive(Debug, Clone)]
pub struct Broken {
    identity: Identity,
    error: PolicyError,
}

impl Broken {
    /// A policy that fails with `error`. The component has the bytes `component`.
    #[must_use]
    pub fn new(source: String, component: &[u8], settings: &Value, error: PolicyError) -> Self {
        let identity = Identity { source, digest: hash::digest(component), settings_digest: hash::digest_json(settings) };
        Self { identity, error }
    }
}

impl<S: Slot> Policy<S> for Broken {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, _: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(std::future::ready(Err(self.error.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_file_and_the_flag_is_named() {
        let file = |slot, name: &str| (slot, PathBuf::from(name));
        let policies = [file(SlotName::KonnectEnv, "a.wasm"), file(SlotName::PluginPackaging, "b.wasm")];
        let files = Files::named(&policies, &[file(SlotName::KonnectEnv, "a.yaml")]).unwrap();
        assert_eq!(files.paths().collect::<Vec<_>>(), [Path::new("a.wasm"), Path::new("b.wasm"), Path::new("a.yaml")]);
        let twice = [file(SlotName::KonnectEnv, "a.yaml"), file(SlotName::KonnectEnv, "b.yaml")];
        let error = Files::named(&policies, &twice).unwrap_err().to_string();
        assert_eq!(error, "--settings konnect-env is there twice: one file per slot");
    }
}
