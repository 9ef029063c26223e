//! Policies of a plan: the built-in components, files or remote plugins instead. A file or plugin that is no usable component still stands for its slot, as a policy that
//! always fails: the plan shows what would happen in a cluster.

use std::path::{Path, PathBuf};

use weir_core::policy::{Policies, SlotName};
use weir_host::{
    files::{Error, Files, Origin, Remotes},
    wasm::{Config, Limits, Wasm},
};

use crate::exit::{Exit, Failure};

/// Policies that are ready, and what is wrong with the others.
pub struct Loaded {
    /// One per slot.
    pub policies: Policies,
    /// Files and plugins that are no usable policy.
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
pub fn load(host: &Wasm, policies: &[(SlotName, PathBuf)], settings: &[(SlotName, PathBuf)], limits: Limits) -> anyhow::Result<Loaded> {
    load_beside(host, policies, settings, limits, &Remotes::new())
}

/// As [`load`], where remote plugins answer the slots that no file is named for.
///
/// # Errors
/// As [`load`].
pub fn load_beside(
    host: &Wasm,
    policies: &[(SlotName, PathBuf)],
    settings: &[(SlotName, PathBuf)],
    limits: Limits,
    remotes: &Remotes,
) -> anyhow::Result<Loaded> {
    let loaded = Files::named(policies, settings).and_then(|files| files.load_beside(host, limits, remotes)).map_err(failure)?;
    let problem = |u: &weir_host::files::Unusable| {
        let whose = match &u.origin {
            Origin::File(path) => format!("--policy {}={}", u.slot, path.display()),
            Origin::Remote(name) => format!("--remote {name}, slot {}", u.slot),
        };
        Problem { exit: weir_core::plan::Outcome::from(&u.error).into(), message: format!("{whose}: {}", u.error) }
    };
    Ok(Loaded { policies: loaded.policies, problems: loaded.unusable.iter().map(problem).collect() })
}

fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Builtin { .. } => error.into(),
        Error::Read { .. } | Error::Document { .. } | Error::Settings { .. } | Error::Twice { .. } => {
            Failure::usage(error.to_string()).into()
        }
    }
}
