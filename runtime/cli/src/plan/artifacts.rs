//! Artifacts of a plan: from files, or from the registry that `spec.image` names.

use std::{collections::BTreeMap, io::Read, path::Path, sync::Arc};

use tokio::runtime::Runtime;
use weir_core::plugin_installation::snapshot::{Artifact, Fetch};
use weir_host::oci::{self, Credentials, DockerConfig, Limits, Puller, Reference, Registries};

use crate::{
    args,
    exit::{Exit, Failure},
};

/// Largest file of credentials or CAs, bytes.
const MAX_FILE: u64 = 1 << 20;

/// Where artifacts come from.
pub struct Artifacts {
    /// Files, by the reference that names them, in its canonical form.
    given: BTreeMap<String, Arc<Artifact>>,
    registry: Option<Registry>,
}

struct Registry {
    runtime: Runtime,
    puller: Puller,
    /// A docker config.
    auth: Option<Vec<u8>>,
}

impl Artifacts {
    /// Reads `--artifact REF=PATH`, and gets ready to pull the others where `--pull` says so.
    ///
    /// # Errors
    /// A reference that is none, what cannot be read as an artifact, unusable registry settings ([`Exit::Usage`]).
    pub fn new(args: &args::Plan) -> anyhow::Result<Self> {
        let mut given = BTreeMap::new();
        for (reference, path) in &args.artifacts {
            let key = canonical(reference).map_err(|error| Failure::usage(format!("--artifact {reference}: {error}")))?;
            let artifact = oci::local::read(path, &Limits::default())
                .map_err(|error| Failure::usage(format!("--artifact {reference}={}: {error}", path.display())))?;
            if given.insert(key, Arc::new(core_artifact(artifact))).is_some() {
                return Err(Failure::usage(format!("--artifact {reference} is there twice")).into());
            }
        }
        Ok(Self { given, registry: args.pull.then(|| Registry::new(args)).transpose()? })
    }

    /// The artifact that an installation's `spec.image` names.
    pub(super) fn of(&self, image: &str) -> Fetch {
        let reference = match Reference::parse(image) {
            Ok(reference) => reference,
            Err(error) => return Fetch::Failed { message: format!("spec.image: {error}"), transient: false, digest: None },
        };
        match (self.given.get(&reference.to_string()), &self.registry) {
            (Some(artifact), _) => Fetch::Fetched(Arc::clone(artifact)),
            (None, Some(registry)) => registry.pull(&reference),
            (None, None) => Fetch::NotAsked,
        }
    }
}

impl Registry {
    fn new(args: &args::Plan) -> anyhow::Result<Self> {
        let registries = Registries {
            insecure: args.insecure_registries.clone(),
            ca_bundles: args.registry_cas.iter().map(|path| read("--registry-ca", path)).collect::<anyhow::Result<_>>()?,
            proxies: crate::operator::proxies(|name| std::env::var(name).ok()),
            ..Registries::default()
        };
        let puller = Puller::new(registries).map_err(|error| Failure::usage(format!("--pull: {error}")))?;
        let auth = args.registry_auth_file.as_ref().map(|path| read("--registry-auth-file", path)).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, puller, auth })
    }

    fn pull(&self, reference: &Reference) -> Fetch {
        let credentials = match self.auth.as_ref().map(|auth| oci::docker_config(DockerConfig::Json, auth, reference)) {
            None | Some(Err(oci::CredentialsError::NoEntry { .. })) => Credentials::Anonymous,
            Some(Ok(credentials)) => credentials,
            Some(Err(error)) => return Fetch::Failed { message: format!("--registry-auth-file: {error}"), transient: false, digest: None },
        };
        match self.runtime.block_on(self.puller.pull(reference, &credentials, &Limits::default())) {
            Ok(artifact) => Fetch::Fetched(Arc::new(core_artifact(artifact))),
            Err(error) => Fetch::Failed { transient: error.transient(), message: error.to_string(), digest: None },
        }
    }
}

fn read(flag: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = |why: String| Failure { exit: Exit::Usage, message: format!("{flag} {}: {why}", path.display()) };
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(failed(format!("over {} MiB", MAX_FILE >> 20)).into());
    }
    Ok(bytes)
}

fn canonical(reference: &str) -> Result<String, oci::ReferenceError> {
    Reference::parse(reference).map(|reference| reference.to_string())
}

/// The artifact as the core takes it. What people approve is what the reference leads to: the index, where there is one.
fn core_artifact(artifact: oci::Artifact) -> Artifact {
    Artifact {
        digest: artifact.index_digest.unwrap_or(artifact.digest),
        annotations: artifact.annotations,
        signers: Vec::new(),
        files: artifact.files,
        notes: artifact.notes,
    }
}
