//! Signatures of artifacts: who signed what was pulled, and whether that is enough.
//!
//! cosign leaves a signature in one of two forms: a layer of the image tagged `sha256-<digest>.sig` (simple signing), or a bundle that
//! refers to what is signed (version 3 of cosign, the default). Both are fetched by our own client ([`find`]), brought into one shape
//! ([`Signature`](signature::Signature)), and judged from bytes, without a network ([`judge`]). docs/adr/0008-signatures.md says what
//! of it the `sigstore` crate does.

mod bundle;
mod certificate;
mod encoding;
mod error;
pub(super) mod find;
mod judge;
mod key;
mod log;
mod sct;
mod signature;
mod simple;
mod stamp;
mod trust;

pub use error::VerifyError;
pub use key::KeyProblem;
pub use trust::{MAX_TRUST_ROOT, TrustRoot, TrustRootError};

use std::fmt;

use futures::FutureExt;

use super::{Credentials, Error, Puller, Reference, call::Call};
use find::Search;
use key::Key;

/// Who may have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// Who holds a private key.
    Key {
        /// Where the public key comes from, for messages: `namespace/secret#key`.
        name: String,
        /// The public key, PEM.
        pem: Vec<u8>,
    },
    /// Who could log in somewhere, by a certificate (keyless).
    Identity {
        /// Who the identity provider is: a URL, compared as it is.
        issuer: String,
        /// Who that is there: an e-mail address or a URL, compared as it is.
        subject: String,
    },
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { name, .. } => write!(f, "key {name}"),
            Self::Identity { issuer, subject } => write!(f, "{issuer} {subject}"),
        }
    }
}

/// What is asked of an artifact. Both lists have to be content; an empty one asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirement {
    /// One of these must have signed.
    pub any_of: Vec<Signer>,
    /// All of these must have signed.
    pub all_of: Vec<Signer>,
}

/// Whether a public key can be used.
pub(super) fn check_key(pem: &[u8]) -> Result<(), KeyProblem> {
    Key::parse(pem).map(drop)
}

/// An artifact whose signatures are enough.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Which of the signers asked for have signed, as [`Signer`] shows them, each once. Empty where nothing was asked for.
    pub signers: Vec<String>,
}

impl Puller {
    /// Whether the artifact with one of `digests` is signed as all of `requirements` ask. `digests` are what the artifact was pulled
    /// by: its manifest's, and its index's where there was one, since that names the manifest. A signature of anything else, and what
    /// it says beside the digest, counts for nothing. Without requirements nothing is fetched.
    ///
    /// # Errors
    /// See [`VerifyError`]; whether it may pass by itself is [`VerifyError::transient`].
    pub async fn verify(
        &self,
        reference: &Reference,
        credentials: &Credentials,
        digests: &[&str],
        requirements: &[Requirement],
        trust: Option<&TrustRoot>,
    ) -> Result<Verified, VerifyError> {
        if requirements.is_empty() {
            return Ok(Verified::default());
        }
        let keys = readable(requirements)?;
        let artifact = digests.first().map_or_else(|| reference.to_string(), |digest| format!("{}@{digest}", reference.place()));
        let owned: Vec<String> = digests.iter().map(|digest| (*digest).to_owned()).collect();
        let search = self.somewhere(reference, credentials, |call| search(call, owned.clone()).boxed()).await?;
        judge::judge(&judge::Case { artifact: &artifact, digests, keys: &keys, trust }, &search, requirements)
    }
}

async fn search(mut call: Call<'_>, digests: Vec<String>) -> Result<Search, Error> {
    call.signatures(&digests.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// The keys of all requirements, in their order. A requirement that asks for nobody and a key that cannot be read are mistakes
/// whatever was signed.
fn readable(requirements: &[Requirement]) -> Result<Vec<(&[u8], Key)>, VerifyError> {
    let mut keys = Vec::new();
    for requirement in requirements {
        if requirement.any_of.is_empty() && requirement.all_of.is_empty() {
            return Err(VerifyError::Nobody);
        }
        for signer in requirement.any_of.iter().chain(&requirement.all_of) {
            match signer {
                Signer::Key { name, pem } => {
                    let key = Key::parse(pem).map_err(|problem| VerifyError::Key { name: name.clone(), problem })?;
                    keys.push((pem.as_slice(), key));
                }
                Signer::Identity { .. } => {}
            }
        }
    }
    Ok(keys)
}
