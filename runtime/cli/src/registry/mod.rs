//! Registries, for the commands that speak to them.

mod fault;
mod login;
mod progress;

use std::{future::Future, io::Read, path::PathBuf, sync::Arc};

use tokio::runtime::Runtime;
use weir_host::oci::{Credentials, Puller, Reference, Registries, registries_file};

pub use self::{
    fault::{local, pull, push},
    login::Lookup,
};
use self::{login::Login, progress::Progress};
use crate::{
    args::{named, path_if_any},
    exit::Failure,
};

/// Largest file of CAs, bytes.
const MAX_FILE: u64 = 1 << 20;

/// How registries are reached.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Credentials: a docker config file, whose credential helpers are run. By default `weir policy` takes Docker's own, `weir plan` none.
    #[arg(long, visible_alias = "authfile", env = "WEIR_REGISTRY_AUTH_FILE", value_name = "FILE",
          value_parser = path_if_any())]
    pub registry_auth_file: Option<PathBuf>,
    /// Registry that is spoken to in plain HTTP. Repeatable; loopback needs none.
    #[arg(long = "insecure-registry", env = "WEIR_INSECURE_REGISTRY", value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub insecure_registries: Vec<String>,
    /// PEM file with CAs of registries, trusted beside the system's. Repeatable.
    #[arg(long = "registry-ca", env = "WEIR_REGISTRY_CA", value_name = "FILE", value_delimiter = ',')]
    pub registry_cas: Vec<PathBuf>,
    /// YAML file that says how registries are reached: mirrors, CAs, proxies, credentials (docs/registries.md).
    #[arg(long, env = "WEIR_REGISTRIES_FILE", value_name = "FILE", value_parser = path_if_any())]
    pub registries_file: Option<PathBuf>,
}

/// A client and what it runs on.
pub struct Registry {
    runtime: Runtime,
    puller: Puller,
    login: Arc<Login>,
}

impl Registry {
    /// Reads what the flags name. With `quiet` nobody is told how far transfers are.
    ///
    /// # Errors
    /// Settings and files that cannot be used ([`Exit::Usage`](crate::exit::Exit::Usage)).
    pub fn new(flags: &Flags, lookup: Lookup, quiet: bool) -> anyhow::Result<Self> {
        let file = named(flags.registries_file.as_ref());
        let file = file
            .map(|path| registries_file::read(path))
            .transpose()
            .map_err(|error| Failure::usage(format!("--registries-file {error}")))?;
        let cas = flags.registry_cas.iter().filter(|path| !path.as_os_str().is_empty());
        let registries = Registries {
            insecure: flags.insecure_registries.iter().filter(|host| !host.is_empty()).cloned().collect(),
            ca_bundles: cas.map(|path| Ok(read("--registry-ca", path, MAX_FILE)?)).collect::<anyhow::Result<_>>()?,
            proxies: crate::operator::proxies(|name| std::env::var(name).ok()),
            ..Registries::default()
        };
        let registries = match &file {
            Some(file) => file.registries(registries),
            None => registries,
        };
        let auth_file = named(flags.registry_auth_file.as_ref()).map(PathBuf::as_path);
        let login = Arc::new(Login::find(auth_file.or(file.as_ref().and_then(registries_file::File::auth_file)), lookup)?);
        let for_mirrors = Arc::clone(&login);
        let puller = Puller::new(registries).map_err(|error| Failure::usage(error.to_string()))?;
        let puller = puller.with_mirror_credentials(move |mirror| for_mirrors.of_mirror(mirror));
        let puller = match Progress::for_people(quiet) {
            Some(progress) => puller.watched(Arc::new(progress)),
            None => puller,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, puller, login })
    }

    /// What the registry of `reference` is shown.
    ///
    /// # Errors
    /// A docker config or a helper that cannot be used ([`Exit::Usage`](crate::exit::Exit::Usage)).
    pub fn credentials(&self, reference: &Reference) -> Result<Credentials, Failure> {
        self.login.of(reference)
    }

    /// The client.
    #[must_use]
    pub fn puller(&self) -> &Puller {
        &self.puller
    }

    /// Waits for one of the client's answers.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }
}

/// A file that `flag` names, of at most so many bytes.
pub(crate) fn read(flag: &str, path: &std::path::Path, most: u64) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::usage(format!("{flag} {}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(failed(format!("over {} MiB", most >> 20)));
    }
    Ok(bytes)
}
