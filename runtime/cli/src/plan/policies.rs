//! Policies of a plan: the built-in components, or files instead. A file that is no usable component still stands for its slot, as a policy that
//! always fails: the plan shows what would happen in a cluster.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use weir_core::{
    hash,
    policy::{BoxFuture, ConflictResolution, Identity, KonnectEnv, PluginPackaging, Policies, Policy, PolicyError, Slot, SlotName},
};
use weir_host::wasm::{Builtin, Config, Limits, LoadError, Wasm, WasmSlot};

use super::sources;
use crate::exit::{Exit, Failure};

/// Policies that are ready, and what is wrong with the others.
pub struct Loaded {
    /// One per slot.
    pub policies: Policies,
    /// Files that are no usable component.
    pub problems: Vec<Problem>,
}

/// A policy that could not be loaded.
#[derive(Debug)]
pub struct Problem {
    /// How the command ends at least.
    pub exit: Exit,
    /// What to say.
    pub message: String,
}

/// Starts the Wasm host with the operator's own limits.
///
/// # Errors
/// When the engine does not start.
pub fn host(cache_dir: &Path) -> anyhow::Result<Wasm> {
    let cache_dir = (!cache_dir.as_os_str().is_empty()).then(|| cache_dir.join("aot"));
    let compile_program = std::env::current_exe().ok().filter(|exe| exe.file_stem().is_some_and(|name| name == "weir"));
    Ok(Wasm::new(Config { cache_dir, compile_program, ..Config::default() })?)
}

/// Loads the policies of all slots, each call of them within `limits`.
///
/// # Errors
/// Unreadable files, settings that the policy refuses, a slot named twice ([`Exit::Usage`]).
pub fn load(host: &Wasm, files: &[(SlotName, PathBuf)], settings: &[(SlotName, PathBuf)], limits: Limits) -> anyhow::Result<Loaded> {
    let mut loader =
        Loader { host, limits, files: by_slot("--policy", files)?, settings: by_slot("--settings", settings)?, problems: Vec::new() };
    let policies = Policies { konnect_env: loader.slot::<KonnectEnv>()?, conflict_resolution: loader.slot::<ConflictResolution>()? };
    // Nothing asks this slot yet; a file given for it is still checked.
    if let Some(path) = loader.files.get(&SlotName::PluginPackaging).copied() {
        loader.file::<PluginPackaging>(path)?;
    } else if loader.settings.contains_key(&SlotName::PluginPackaging) {
        return Err(Failure::usage("--settings plugin-packaging: no built-in policy serves this slot yet; name one with --policy").into());
    }
    Ok(Loaded { policies, problems: loader.problems })
}

fn by_slot<'a>(flag: &str, pairs: &'a [(SlotName, PathBuf)]) -> anyhow::Result<BTreeMap<SlotName, &'a Path>> {
    let mut map = BTreeMap::new();
    for (slot, path) in pairs {
        if map.insert(*slot, path.as_path()).is_some() {
            return Err(Failure::usage(format!("{flag} {slot} is there twice: one file per slot")).into());
        }
    }
    Ok(map)
}

type Files<'a> = BTreeMap<SlotName, &'a Path>;

struct Loader<'a> {
    host: &'a Wasm,
    limits: Limits,
    files: Files<'a>,
    settings: Files<'a>,
    problems: Vec<Problem>,
}

impl Loader<'_> {
    fn settings<S: Slot>(&self) -> anyhow::Result<Value> {
        self.settings.get(&S::NAME).map_or(Ok(Value::Null), |path| sources::settings(path))
    }

    fn slot<S: Builtin + WasmSlot>(&mut self) -> anyhow::Result<Arc<dyn Policy<S>>> {
        match self.files.get(&S::NAME).copied() {
            Some(path) => self.file::<S>(path),
            None => match self.host.builtin::<S>(self.settings::<S>()?, self.limits) {
                Ok(policy) => Ok(policy),
                Err(LoadError::Settings(findings)) => Err(bad_settings(S::NAME, &findings)),
                Err(LoadError::Policy(error)) => Err(anyhow::anyhow!("the built-in {} policy does not load: {error}", S::NAME)),
            },
        }
    }

    fn file<S: WasmSlot>(&mut self, path: &Path) -> anyhow::Result<Arc<dyn Policy<S>>> {
        let settings = self.settings::<S>()?;
        let bytes = sources::component(path)?;
        let source = format!("file:{}", path.file_name().unwrap_or_default().to_string_lossy());
        match self.host.load::<S>(&bytes, source.clone(), settings.clone(), self.limits) {
            Ok(policy) => Ok(policy),
            Err(LoadError::Settings(findings)) => Err(bad_settings(S::NAME, &findings)),
            Err(LoadError::Policy(error)) => {
                self.problems.push(Problem {
                    exit: weir_core::plan::Outcome::from(&error).into(),
                    message: format!("--policy {}={}: {error}", S::NAME, path.display()),
                });
                let identity = Identity { source, digest: hash::digest(&bytes), settings_digest: hash::digest_json(&settings) };
                Ok(Arc::new(Broken { identity, error }))
            }
        }
    }
}

fn bad_settings(slot: SlotName, findings: &[weir_core::policy::Finding]) -> anyhow::Error {
    let lines: Vec<String> =
        findings.iter().map(|f| format!("{}: {}", if f.path.is_empty() { "settings" } else { &f.path }, f.message)).collect();
    Failure::usage(format!("--settings {slot}: the policy refuses them: {}", lines.join("; "))).into()
}

/// Stands for a component that could not be loaded.
struct Broken {
    identity: Identity,
    error: PolicyError,
}

impl<S: Slot> Policy<S> for Broken {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, _: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(std::future::ready(Err(self.error.clone())))
    }
}
