//! Remote plugins of a plan: reached as the operator reaches them, for the slots that they advertise.

use std::{path::PathBuf, sync::Arc, time::Duration};

use weir_core::policy::SlotName;
use weir_host::{
    files::Remotes,
    remote::{AcquireError, Endpoint, Plugin, Registry, Tuning},
};

use crate::{
    exit::{Exit, Failure},
    remote::sides::{self, Sides},
};

/// Longest wait for a plugin, with everything that is learned of it.
const REACH: Duration = Duration::from_secs(15);

/// Flags about remote plugins.
#[derive(Debug, Clone, clap::Args)]
// Beside the flags about registries, whose group would have the same name.
#[group(id = "remote-plugins")]
pub struct Flags {
    /// Let the remote plugin of this name, which listens there, answer the slots that it advertises and that no --policy is for. Repeatable.
    #[arg(long = "remote", value_name = "NAME=HOST:PORT", value_parser = named, requires_all = ["ca", "cert", "key"])]
    remotes: Vec<(String, Endpoint)>,
    /// Certificates the remote plugins are trusted by, a PEM file: their own, or their issuers'.
    #[arg(id = "ca", long = "remote-ca", value_name = "FILE", requires = "remotes")]
    ca: Option<PathBuf>,
    /// Certificate of the operator for remote plugins, a PEM file.
    #[arg(id = "cert", long = "remote-cert", value_name = "FILE", requires = "remotes")]
    cert: Option<PathBuf>,
    /// Key of that certificate, a PEM file.
    #[arg(id = "key", long = "remote-key", value_name = "FILE", requires = "remotes")]
    key: Option<PathBuf>,
    /// Name that the remote plugins' certificates must have, one of them if several are given; the first one is sent. Repeatable. By default HOST.
    #[arg(id = "server-name", long = "remote-server-name", value_name = "NAME", requires = "remotes")]
    server_names: Vec<String>,
}

/// Plugins that were reached. Their connections end with it.
pub(super) struct Reached {
    /// Who answers which slot.
    pub(super) slots: Remotes,
    _registry: Registry,
    _runtime: tokio::runtime::Runtime,
}

impl Flags {
    /// Reaches every plugin; none without the flag.
    ///
    /// # Errors
    /// Unreadable files; a name that is there twice; a plugin that cannot be used, with its reason; a slot that two of them advertise.
    pub(super) fn reach(&self) -> anyhow::Result<Option<Reached>> {
        let (Some(ca), Some(cert), Some(key)) = (&self.ca, &self.cert, &self.key) else { return Ok(None) };
        let sides = Sides { ca, cert, key, prefix: "--remote-" };
        let mut specs = Vec::with_capacity(self.remotes.len());
        for (name, endpoint) in &self.remotes {
            if specs.iter().any(|spec: &weir_host::remote::Spec| spec.name == *name) {
                return Err(Failure::usage(format!("--remote {name} is there twice: one address per plugin")).into());
            }
            specs.push(sides.spec(name, endpoint, &self.server_names)?);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let registry = Registry::new(runtime.handle().clone(), Tuning::default(), Arc::new(()));
        registry.replace(specs);
        let mut slots = Remotes::new();
        for (name, endpoint) in &self.remotes {
            let Some(plugin) = registry.get(name) else { continue };
            let offered = runtime.block_on(offered(&plugin, endpoint))?;
            for slot in offered {
                if let Some(other) = slots.insert(slot, Arc::clone(&plugin)) {
                    let message = format!("slot {slot} is advertised by {} and by {name}: name one of them with --remote", other.name());
                    return Err(Failure::usage(message).into());
                }
            }
        }
        Ok(Some(Reached { slots, _registry: registry, _runtime: runtime }))
    }
}

/// The slots a plugin advertises; one without any is of no use to a plan.
async fn offered(plugin: &Arc<Plugin>, endpoint: &Endpoint) -> Result<Vec<SlotName>, Failure> {
    let name = plugin.name();
    let lease = plugin.acquire(REACH).await.map_err(|error| unreached(name, endpoint, &error))?;
    let slots: Vec<SlotName> = lease.capabilities().slots.iter().copied().collect();
    if slots.is_empty() {
        let message =
            format!("--remote {name}={endpoint}: its manifest advertises no slot (`weir.dev/slot.…`), and it has no lifecycle hooks");
        return Err(Failure { exit: Exit::Incompatible, message });
    }
    Ok(slots)
}

fn unreached(name: &str, endpoint: &Endpoint, error: &AcquireError) -> Failure {
    let exit = match error {
        AcquireError::NotReady { reason, .. } => sides::exit(*reason),
        AcquireError::Timeout { .. } => Exit::Exhausted,
        AcquireError::Unknown { .. } | AcquireError::Busy { .. } | AcquireError::Closed { .. } => Exit::Unavailable,
    };
    Failure { exit, message: format!("--remote {name}={endpoint}: {}: {error}", error.reason()) }
}

/// `NAME=HOST:PORT`.
fn named(text: &str) -> Result<(String, Endpoint), String> {
    match text.split_once('=') {
        Some((name, at)) if !name.is_empty() => Ok((name.to_owned(), sides::endpoint(at)?)),
        Some(_) | None => Err("write NAME=HOST:PORT, with the name that the plugin says it has".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_a_name_and_an_address() {
        let parsed = |text| named(text).map(|(name, at)| (name, at.to_string()));
        assert_eq!(parsed("env.example.com=plugin:9090"), Ok(("env.example.com".into(), "plugin:9090".into())));
        assert_eq!(parsed("a=[::1]:9090"), Ok(("a".into(), "[::1]:9090".into())));
        for bad in ["plugin:9090", "=plugin:9090", "a=plugin", "a="] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
