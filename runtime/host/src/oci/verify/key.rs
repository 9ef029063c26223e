//! Public keys, as `cosign generate-key-pair` and openssl write them.

use sigstore::crypto::{CosignVerificationKey, Signature};

use super::super::text;

/// More than any public key, bytes.
const MAX_PEM: usize = 16 << 10;
const BEGIN: &str = "-----BEGIN ";

/// A key that is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// Not PEM.
    #[error("it is no key in PEM form; give the whole of cosign.pub, from -----BEGIN PUBLIC KEY----- to its end")]
    NotPem,
    /// The other half.
    #[error("it holds a private key, which is for signing and belongs nowhere near a cluster; give cosign.pub instead")]
    Private,
    /// A certificate.
    #[error("it holds a certificate; give its public key, or the issuer and subject of a keyless signature")]
    Certificate,
    /// More than one.
    #[error("it holds more than one key; give each an entry of its own")]
    Several,
    /// cosign signs with it in a variant, Ed25519ph, that our crypto provider does not have.
    #[error(
        "it is an Ed25519 key, whose signatures by cosign (Ed25519ph) cannot be checked here; sign with ECDSA (as `cosign generate-key-pair` makes it) or RSA"
    )]
    Ed25519,
    /// A kind that is not supported, or nonsense.
    #[error("it cannot be used ({0}); ECDSA on P-256, P-384 and P-521, and RSA are known")]
    Kind(String),
}

/// A public key that signatures can be checked with.
#[derive(Debug)]
pub(super) struct Key(CosignVerificationKey);

impl Key {
    /// Reads exactly one public key.
    pub(super) fn parse(pem: &[u8]) -> Result<Self, KeyProblem> {
        let pem = std::str::from_utf8(pem).ok().filter(|pem| pem.len() <= MAX_PEM).ok_or(KeyProblem::NotPem)?;
        let labels: Vec<&str> = pem.split(BEGIN).skip(1).map(|rest| rest.split("-----").next().unwrap_or_default()).collect();
        match labels.as_slice() {
            [] => return Err(KeyProblem::NotPem),
            labels if labels.iter().any(|label| label.contains("PRIVATE KEY")) => return Err(KeyProblem::Private),
            ["PUBLIC KEY"] => {}
            ["CERTIFICATE"] => return Err(KeyProblem::Certificate),
            [other] => return Err(KeyProblem::Kind(format!("\"{}\" is not PUBLIC KEY", text::name(other)))),
            _ => return Err(KeyProblem::Several),
        }
        match CosignVerificationKey::try_from_pem(pem.trim().as_bytes()) {
            Ok(CosignVerificationKey::ED25519(_)) => Err(KeyProblem::Ed25519),
            Ok(key) => Ok(Self(key)),
            Err(error) => Err(KeyProblem::Kind(text::said(&error.to_string()))),
        }
    }

    /// Reads what certificates and trust roots hold: a SubjectPublicKeyInfo.
    pub(super) fn from_der(der: &[u8]) -> Result<Self, KeyProblem> {
        CosignVerificationKey::try_from_der(der).map(Self).map_err(|error| KeyProblem::Kind(text::said(&error.to_string())))
    }

    /// Whether `signature` is of `message`, by who holds the private key.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.verify_signature(Signature::Raw(signature), message).is_ok()
    }

    /// For what the crate checks as a whole.
    pub(super) fn inner(&self) -> &CosignVerificationKey {
        &self.0
    }
}
