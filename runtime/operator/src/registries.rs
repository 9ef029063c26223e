//! How registries are reached, from the settings.

use std::time::Duration;

use weir_host::oci::{DialPolicy, Puller, Registries, Timeouts};

use crate::{config::Config, error::Error};

/// Requests of all namespaces share a few turns: a registry that hangs must not keep the others waiting for long.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(5), read: Duration::from_secs(10), total: Duration::from_secs(60) };

/// How registries are reached, and what asks them.
///
/// # Errors
/// A file that cannot be read, or settings that cannot be used.
pub(crate) fn puller(config: &Config) -> Result<(Registries, Puller), Error> {
    let read = |path: &std::path::PathBuf| std::fs::read(path).map_err(|source| Error::RegistryCa { path: path.clone(), source });
    let registries = Registries {
        insecure: config.insecure_registries.clone(),
        // Plain HTTP is spoken where an administrator says so, and nowhere else.
        loopback_tls: config.allowed_registries.iter().map(|entry| authority(entry).to_owned()).collect(),
        ca_bundles: config.registry_cas.iter().map(read).collect::<Result<_, _>>()?,
        proxies: config.proxies.clone(),
        allowed: config.allowed_registries.clone(),
        dial: dial(config),
        timeouts: TIMEOUTS,
        ..Registries::default()
    };
    let puller = Puller::new(registries.clone())?;
    Ok((registries, puller))
}

/// Whoever writes an installation chooses what the operator connects to. Its own loopback is nobody's registry, unless an administrator
/// named a host by itself.
fn dial(config: &Config) -> DialPolicy {
    let named = config.insecure_registries.iter().chain(&config.allowed_registries);
    let hosts = named.map(|entry| host(entry)).filter(|host| !host.is_empty());
    DialPolicy { loopback: false, private: true, listed: hosts.map(String::from).collect() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_without_port_and_path() {
        for (entry, expected) in
            [("a.example.com:5000/b", "a.example.com"), ("127.0.0.1:5000", "127.0.0.1"), ("[::1]:5000/x", "::1"), ("a", "a")]
        {
            assert_eq!(host(entry), expected);
        }
    }
}
