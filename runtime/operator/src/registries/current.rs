//! What counts now. Whoever has begun with it ends with it.

use std::sync::Arc;

use weir_core::hash;
use weir_host::oci::{
    Credentials, Puller, PullerError, Reference, Registries, Requirement, TrustRoot,
    login::{Login, LoginError},
    verification_file,
};

/// Whose signatures artifacts need, and whose certificates count.
#[derive(Debug, Default)]
pub struct Trust {
    /// By repository.
    pub list: verification_file::File,
    /// Whose certificates count, and the digest of the file that says so.
    pub root: Option<(TrustRoot, String)>,
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        let digest = |trust: &Self| trust.root.as_ref().map(|(_, digest)| digest.clone());
        self.list == other.list && digest(self) == digest(other)
    }
}

/// What counts now. Cheap to clone; has no Debug.
#[derive(Clone)]
pub struct Current {
    /// How registries are reached.
    pub registries: Registries,
    /// Who asks them.
    pub puller: Puller,
    login: Option<Arc<Login>>,
    trust: Arc<Trust>,
}

impl Current {
    /// Reads the settings once.
    ///
    /// # Errors
    /// See [`PullerError`].
    pub fn new(registries: Registries, login: Option<Login>, trust: Arc<Trust>) -> Result<Self, PullerError> {
        let login = login.map(Arc::new);
        Ok(Self { puller: puller(registries.clone(), login.as_ref())?, registries, login, trust })
    }

    /// The same with other words about signatures: connections and tokens stay.
    #[must_use]
    pub fn trusting(&self, trust: Arc<Trust>) -> Self {
        Self { trust, ..self.clone() }
    }

    /// Who asks a registry whose CA is in `bundle`.
    ///
    /// # Errors
    /// When there is no CA in it.
    pub fn puller_with_ca(&self, bundle: Vec<u8>) -> Result<Puller, PullerError> {
        let mut registries = self.registries.clone();
        registries.ca_bundles.push(bundle);
        puller(registries, self.login.as_ref())
    }

    /// What a registry is shown: what the object names, else what the operator has for it.
    ///
    /// # Errors
    /// A docker config, or a helper, that cannot be used.
    pub async fn credentials(&self, reference: &Reference, given: &Credentials) -> Result<Credentials, LoginError> {
        let (true, Some(login)) = (given.is_anonymous(), self.login.clone()) else { return Ok(given.clone()) };
        let reference = reference.clone();
        // A helper is a program, and may think for a minute.
        match tokio::task::spawn_blocking(move || login.of(&reference)).await {
            Ok(found) => found.map(Option::unwrap_or_default),
            // Only at the end of the process.
            Err(_) => Ok(Credentials::Anonymous),
        }
    }

    /// Whose signatures the operator wants of an artifact, whoever names it.
    #[must_use]
    pub fn requirement(&self, reference: &Reference) -> Option<&Requirement> {
        self.trust.list.requirement(reference)
    }

    /// Digest of that, whose certificates count included; none where nothing is wanted.
    #[must_use]
    pub fn wanted(&self, reference: &Reference) -> Option<String> {
        let list = self.trust.list.digest(reference)?;
        let root = self.trust.root.as_ref().filter(|_| self.trust.list.wants_identities());
        Some(root.map_or_else(|| list.clone(), |(_, root)| hash::digest_json(&(&list, root))))
    }

    /// Whose certificates count.
    #[must_use]
    pub fn root(&self) -> Option<&TrustRoot> {
        self.trust.root.as_ref().map(|(root, _)| root)
    }
}

fn puller(registries: Registries, login: Option<&Arc<Login>>) -> Result<Puller, PullerError> {
    let puller = Puller::new(registries)?;
    let Some(login) = login.cloned() else { return Ok(puller) };
    // Asked from inside of a request: other work of this thread goes on elsewhere meanwhile.
    Ok(puller.with_mirror_credentials(move |mirror| tokio::task::block_in_place(|| login.of_mirror(mirror))))
}
