//! Why an artifact is not taken for signed, in words for whoever signs it or asks for the signature.

use super::{super::Error, KeyProblem};

/// Lines of a list that a message has room for.
const MOST: usize = 6;

/// Why an artifact is not taken for signed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// No signature at all.
    #[error(
        "{artifact} is not signed: nothing was found at {}; sign it with cosign, or copy its signatures along with it",
        listed(.looked_for, ", ")
    )]
    NotSigned {
        /// Repository and digest.
        artifact: String,
        /// Every tag and list that was asked for.
        looked_for: Vec<String>,
    },
    /// Signatures, but not those asked for.
    #[error("{artifact} is not signed by {}; found: {}", listed(.wanted, " and "), listed(.found, "; "))]
    NotBy {
        /// Repository and digest.
        artifact: String,
        /// Who is missing.
        wanted: Vec<String>,
        /// What there is.
        found: Vec<String>,
    },
    /// Something is in place of signatures that is none.
    #[error("{artifact} has no signature that can be read: {}; sign it again with a current cosign", listed(.problems, "; "))]
    Malformed {
        /// Repository and digest.
        artifact: String,
        /// What is wrong, by place.
        problems: Vec<String>,
    },
    /// The signatures cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] Error),
    /// Keyless signatures are asked for, and nobody said whose certificates count.
    #[error(
        "signatures of {identity} are made with certificates, and no trust root says whose certificates count; give the operator a trusted_root.json of the sigstore that signs"
    )]
    NoTrustRoot {
        /// Who is asked for.
        identity: String,
    },
    /// A key that is none.
    #[error("key {name}: {problem}")]
    Key {
        /// Where it comes from.
        name: String,
        /// What is wrong.
        problem: KeyProblem,
    },
    /// A requirement that anything would meet.
    #[error("signatures are asked for, but of nobody; name at least one signer in anyOf or allOf")]
    Nobody,
}

impl VerifyError {
    /// Whether the same check may succeed later without anybody changing anything.
    #[must_use]
    pub fn transient(&self) -> bool {
        match self {
            Self::Fetch(error) => error.transient(),
            Self::NotSigned { .. }
            | Self::NotBy { .. }
            | Self::Malformed { .. }
            | Self::NoTrustRoot { .. }
            | Self::Key { .. }
            | Self::Nobody => false,
        }
    }
}

fn listed(lines: &[String], separator: &str) -> String {
    let shown = lines.iter().take(MOST).cloned().collect::<Vec<_>>().join(separator);
    match lines.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown}{separator}{more} more"),
    }
}
