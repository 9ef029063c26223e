//! How registries are reached and whose signatures count, for policies and plugins alike: flags, and files that are read again when they
//! change.

mod current;
mod live;
mod parts;
mod plugins;

use std::time::Duration;

use weir_host::oci::{DialPolicy, Registries, Timeouts, VerifyError};

pub use self::{
    current::{Current, Trust},
    live::{Changed, Live},
    plugins::Shops,
};
use crate::{config::Config, metrics::VerifyOutcome};

/// Requests of all namespaces share a few turns: a registry that hangs must not keep the others waiting for long.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(5), read: Duration::from_secs(10), total: Duration::from_secs(60) };

/// What flags say, without what is in files.
fn flags(config: &Config) -> Registries {
    Registries {
        insecure: config.insecure_registries.clone(),
        // Plain HTTP is spoken where an administrator says so, and nowhere else.
        loopback_tls: config.allowed_registries.iter().map(|entry| authority(entry).to_owned()).collect(),
        proxies: config.proxies.clone(),
        allowed: config.allowed_registries.clone(),
        dial: dial(config),
        timeouts: TIMEOUTS,
        ..Registries::default()
    }
}

/// Whoever writes an installation or a policy chooses what the operator connects to. Its own loopback and the cluster's own addresses are
/// nobody's registry, unless an administrator named a host by itself.
fn dial(config: &Config) -> DialPolicy {
    let named = config.insecure_registries.iter().chain(&config.allowed_registries);
    let hosts = named.map(|entry| host(entry)).filter(|host| !host.is_empty());
    DialPolicy { loopback: false, private: true, listed: hosts.map(String::from).collect(), refused: config.cluster_ranges.clone() }
}

/// `host[:port]` of `host[:port][/path]`.
fn authority(entry: &str) -> &str {
    entry.split('/').next().unwrap_or_default()
}

fn host(entry: &str) -> &str {
    let authority = authority(entry);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Metric label of a check of signatures that failed; its name is the condition's reason where there is one.
pub(crate) fn outcome(error: &VerifyError) -> VerifyOutcome {
    match error {
        VerifyError::NotSigned { .. } => VerifyOutcome::NotSigned,
        VerifyError::NotBy { .. } => VerifyOutcome::WrongSigner,
        VerifyError::Malformed { .. } => VerifyOutcome::Malformed,
        VerifyError::Fetch(_) => VerifyOutcome::Unreachable,
        VerifyError::NoTrustRoot { .. } => VerifyOutcome::NoTrustRoot,
        VerifyError::Key { .. } | VerifyError::Nobody => VerifyOutcome::InvalidKey,
    }
}

#[cfg(test)]
mod tests;
