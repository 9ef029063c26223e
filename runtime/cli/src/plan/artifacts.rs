//! Artifacts of a plan: from files, or from the registry that `spec.image` names.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use weir_core::plugin_installation::snapshot::{Artifact, Fetch};
use weir_host::oci::{self, Limits, Reference};

use super::verification::Verification;
use crate::{
    args,
    exit::Failure,
    registry::{Lookup, Registry},
};

/// Where artifacts come from.
pub struct Artifacts {
    /// What `--artifact` gives, by the reference in its canonical form.
    given: BTreeMap<String, Given>,
    registry: Option<Registry>,
    verification: Verification,
}

/// An artifact, and the digests that a signature of it may be about.
type Whole = (Artifact, Vec<String>);

struct Given {
    /// The reference as it was written.
    reference: String,
    /// Its content, or why an operator would not take it.
    artifact: Result<Whole, String>,
}

impl Artifacts {
    /// Reads `--artifact REF=PATH`, and gets ready to pull the others where `--pull` says so.
    ///
    /// # Errors
    /// A reference that is none, a path where no artifact is, unusable registry settings ([`Exit::Usage`]).
    pub fn new(args: &args::Plan) -> anyhow::Result<Self> {
        let mut given = BTreeMap::new();
        for (reference, path) in &args.artifacts {
            let key = canonical(reference).map_err(|error| Failure::usage(format!("--artifact {reference}: {error}")))?;
            let artifact = match oci::local::read(path, &Limits::default()) {
                Ok(artifact) => Ok(core_artifact(artifact)),
                Err(error) if is_no_artifact(&error) => {
                    return Err(Failure::usage(format!("--artifact {reference}={}: {error}", path.display())).into());
                }
                Err(error) => Err(format!("{reference}: {}", without_folder(&error.to_string(), path))),
            };
            if given.insert(key, Given { reference: reference.clone(), artifact }).is_some() {
                return Err(Failure::usage(format!("--artifact {reference} is there twice")).into());
            }
        }
        let registry = args.pull.then(|| Registry::new(&args.registry, Lookup::Nowhere, args.quiet)).transpose()?;
        Ok(Self { given, registry, verification: Verification::new(args)? })
    }

    /// The artifact that an installation's `spec.image` names.
    pub(super) fn of(&self, image: &str) -> Fetch {
        let reference = match Reference::parse(image) {
            Ok(reference) => reference,
            Err(error) => return Fetch::Failed { message: format!("spec.image: {error}"), transient: false, digest: None },
        };
        let found = match (self.given.get(&reference.to_string()), &self.registry) {
            (Some(Given { artifact, reference: _ }), _) => artifact.clone().map_err(|message| (message, false)),
            (None, Some(registry)) => pull(registry, &reference),
            (None, None) => return Fetch::NotAsked,
        };
        match found.and_then(|whole| self.verified(&reference, whole)) {
            Ok(artifact) => Fetch::Fetched(Arc::new(artifact)),
            Err((message, transient)) => Fetch::Failed { message, transient, digest: None },
        }
    }

    /// The artifact with its signers, if it has those that it needs.
    fn verified(&self, reference: &Reference, (artifact, digests): Whole) -> Result<Artifact, (String, bool)> {
        let signers = self.verification.signers(self.registry.as_ref(), reference, &digests);
        let signers = signers.map_err(|unverified| (unverified.message, unverified.transient))?;
        Ok(Artifact { signers, verification: self.verification.wanted(reference), ..artifact })
    }

    /// Digest of the signatures that an image needs; none where it needs none.
    pub(super) fn wanted(&self, image: &str) -> Option<String> {
        self.verification.wanted(&Reference::parse(image).ok()?)
    }

    /// References of `--artifact` that none of these images is, as they were written.
    pub(super) fn unused<'a>(&self, images: impl Iterator<Item = &'a str>) -> Vec<&str> {
        let named: BTreeSet<String> = images.filter_map(|image| canonical(image).ok()).collect();
        self.given.iter().filter(|(key, _)| !named.contains(*key)).map(|(_, given)| given.reference.as_str()).collect()
    }
}

/// Whether the command line is wrong. What is wrong with an artifact's content is its installation's trouble, as it is in a cluster.
fn is_no_artifact(error: &oci::local::Error) -> bool {
    use oci::local::Error;
    match error {
        Error::Read { .. } | Error::Unknown { .. } | Error::NoLayout { .. } | Error::NoImage { .. } | Error::Images { .. } => true,
        Error::TooLarge { .. }
        | Error::Missing { .. }
        | Error::Broken { .. }
        | Error::Manifest { .. }
        | Error::Content { .. }
        | Error::Component { .. } => false,
    }
}

/// A status is the same on every machine: it names the file, not the folder it happens to lie in.
fn without_folder(message: &str, path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_else(|| "the artifact".to_owned());
    message.replacen(&path.display().to_string(), &name, 1)
}

fn pull(registry: &Registry, reference: &Reference) -> Result<Whole, (String, bool)> {
    let credentials = registry.credentials(reference).map_err(|failure| (failure.message, false))?;
    let pulled = registry.wait(registry.puller().pull(reference, &credentials, &Limits::default()));
    pulled.map(core_artifact).map_err(|error| (error.to_string(), error.transient()))
}

fn canonical(reference: &str) -> Result<String, oci::ReferenceError> {
    Reference::parse(reference).map(|reference| reference.to_string())
}

/// The artifact as the core takes it. What people approve is what the reference leads to: the index, where there is one.
fn core_artifact(artifact: oci::Artifact) -> Whole {
    let digests = std::iter::once(artifact.digest.clone()).chain(artifact.index_digest.clone()).collect();
    let artifact = Artifact {
        digest: artifact.index_digest.unwrap_or(artifact.digest),
        annotations: artifact.annotations,
        signers: Vec::new(),
        verification: None,
        files: artifact.files,
        notes: artifact.notes,
    };
    (artifact, digests)
}
