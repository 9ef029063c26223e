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

use crate::exit::Failure;

/// Asks a registry for what no file gives.
pub type Pull = Box<dyn Fn(&Reference) -> Result<Whole, Untaken>>;

/// Whose signatures artifacts need. Who asks registries for signatures is up to the caller, as it is for artifacts.
pub trait Verify {
    /// Digest of the signatures that an image needs; none where it needs none.
    fn wanted(&self, reference: &Reference) -> Option<String>;

    /// Who signed an artifact with one of these digests; empty where nobody has to.
    ///
    /// # Errors
    /// That it is not signed as it has to be, or that nobody can tell.
    fn signers(&self, reference: &Reference, digests: &[String]) -> Result<Vec<String>, Untaken>;
}

/// Why an artifact is not taken.
#[derive(Debug, Clone)]
pub struct Untaken {
    /// What to say.
    pub message: String,
    /// Whether it may be taken later without a change.
    pub transient: bool,
}

/// Where artifacts come from.
#[derive(Default)]
pub struct Artifacts {
    /// What `--artifact` gives, by the reference in its canonical form.
    given: BTreeMap<String, Given>,
    pull: Option<Pull>,
    verify: Option<Box<dyn Verify>>,
}

/// An artifact, and the digests that a signature of it may be about.
pub type Whole = (Artifact, Vec<String>);

struct Given {
    /// The reference as it was written.
    reference: String,
    /// Its content, or why an operator would not take it.
    artifact: Result<Whole, String>,
}

impl Artifacts {
    /// Reads what stands for references, and takes the others from `pull`, if anything. Of all of them `verify` says who has to have
    /// signed them; nobody has to without it.
    ///
    /// # Errors
    /// A reference that is none, a path where no artifact is ([`Exit::Usage`](crate::exit::Exit::Usage)).
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a Path)>,
        pull: Option<Pull>,
        verify: Option<Box<dyn Verify>>,
    ) -> Result<Self, Failure> {
        let mut given = BTreeMap::new();
        for (reference, path) in files {
            let key = canonical(reference).map_err(|error| Failure::usage(format!("--artifact {reference}: {error}")))?;
            let artifact = match oci::local::read(path, &Limits::default()) {
                Ok(artifact) => Ok(core_artifact(artifact)),
                Err(error) if is_no_artifact(&error) => {
                    return Err(Failure::usage(format!("--artifact {reference}={}: {error}", path.display())));
                }
                Err(error) => Err(format!("{reference}: {}", without_folder(&error.to_string(), path))),
            };
            if given.insert(key, Given { reference: reference.to_owned(), artifact }).is_some() {
                return Err(Failure::usage(format!("--artifact {reference} is there twice")));
            }
        }
        Ok(Self { given, pull, verify })
    }

    /// The artifact that an installation's `spec.image` names.
    #[must_use]
    pub fn of(&self, image: &str) -> Fetch {
        let reference = match Reference::parse(image) {
            Ok(reference) => reference,
            Err(error) => return Fetch::Failed { message: format!("spec.image: {error}"), transient: false, digest: None },
        };
        let found = match (self.given.get(&reference.to_string()), &self.pull) {
            (Some(Given { artifact, reference: _ }), _) => artifact.clone().map_err(|message| Untaken { message, transient: false }),
            (None, Some(pull)) => pull(&reference),
            (None, None) => return Fetch::NotAsked,
        };
        match found.and_then(|whole| self.verified(&reference, whole)) {
            Ok(artifact) => Fetch::Fetched(Arc::new(artifact)),
            Err(Untaken { message, transient }) => Fetch::Failed { message, transient, digest: None },
        }
    }

    /// The artifact with its signers, if it has those that it needs.
    fn verified(&self, reference: &Reference, (artifact, digests): Whole) -> Result<Artifact, Untaken> {
        let Some(verify) = &self.verify else { return Ok(artifact) };
        let signers = verify.signers(reference, &digests)?;
        Ok(Artifact { signers, verification: verify.wanted(reference), ..artifact })
    }

    /// Digest of the signatures that an image needs; none where it needs none.
    #[must_use]
    pub fn wanted(&self, image: &str) -> Option<String> {
        self.verify.as_ref()?.wanted(&Reference::parse(image).ok()?)
    }

    /// References of `--artifact` that none of these images is, as they were written.
    pub fn unused<'a>(&self, images: impl Iterator<Item = &'a str>) -> Vec<&str> {
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

fn canonical(reference: &str) -> Result<String, oci::ReferenceError> {
    Reference::parse(reference).map(|reference| reference.to_string())
}

/// The artifact as the core takes it. What people approve is what the reference leads to: the index, where there is one.
#[must_use]
pub fn core_artifact(artifact: oci::Artifact) -> Whole {
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
