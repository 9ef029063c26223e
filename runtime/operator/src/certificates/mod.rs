//! The cluster CA and what it signs. Pure but for the random numbers in keys and serials: no client, no clock.
//!
//! The CA is a Secret of Kong's shape (`tls.crt`, `tls.key`), made here, by cert-manager or by hand. Every error names the key of that
//! Secret and the cure, because its text ends up in a condition or in the log of a start that did not succeed.

mod mint;
mod read;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

pub use mint::{Leaf, generate_ca};
pub use read::{Ca, end, unusable_pair, validity};

/// A certificate and its private key. Its `Debug` does not print the key.
pub struct Pem {
    /// One PEM certificate.
    pub certificate: String,
    /// Its private key, PKCS#8.
    pub key: String,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Why a CA cannot be used, or a certificate cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `tls.crt` is something else.
    #[error("key tls.crt of the CA Secret holds no PEM certificate; put the CA's certificate there, first if there are several")]
    NoCertificate,
    /// The PEM is there, what it holds is not a certificate.
    #[error("the first certificate in key tls.crt of the CA Secret cannot be read ({0}); replace it by the PEM certificate of a CA")]
    BadCertificate(String),
    /// A server's certificate was stored as the CA.
    #[error(
        "the first certificate in key tls.crt of the CA Secret must not sign others; it needs basicConstraints CA:TRUE and, where it has \
         key usages, keyCertSign (cert-manager: isCA: true)"
    )]
    NotCa,
    /// The issuer of a leaf has to repeat the CA's subject byte for byte; this one cannot be repeated.
    #[error(
        "the subject of the certificate in key tls.crt of the CA Secret has an attribute more than once or several in one part; make a \
         CA whose subject has each attribute once"
    )]
    Subject,
    /// `tls.key` is something else.
    #[error("key tls.key of the CA Secret holds no PEM private key; put the CA's private key there")]
    NoKey,
    /// It needs a passphrase.
    #[error("the private key in key tls.key of the CA Secret is encrypted; store it without a passphrase")]
    EncryptedKey,
    /// It is damaged or of a kind that is not supported.
    #[error(
        "the private key in key tls.key of the CA Secret cannot be used; it has to be RSA of 2048 bits or more, ECDSA on P-256, P-384 or \
         P-521, or Ed25519, as PKCS#8, PKCS#1 or SEC1"
    )]
    BadKey,
    /// One of the two was replaced.
    #[error(
        "key tls.key of the CA Secret is not the private key of the first certificate in key tls.crt; store the pair that belongs together"
    )]
    KeyMismatch,
    /// The CA's time has not come.
    #[error("the CA certificate in key tls.crt is valid only from {begins}; check the clock, or replace the CA")]
    NotYetValid {
        /// Its notBefore.
        begins: Timestamp,
    },
    /// The CA's time is over.
    #[error("the CA certificate in key tls.crt expired at {ends}; replace tls.crt and tls.key, or delete the Secret to have a new CA made")]
    Expired {
        /// Its notAfter.
        ends: Timestamp,
    },
    /// What the core asked for cannot be put into a certificate.
    #[error("the certificate for {common_name:?} cannot be made: {problem}")]
    Request {
        /// Its subject.
        common_name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The crypto library failed; nothing a user did.
    #[error("a key or certificate could not be made: {0}")]
    Crypto(String),
}
