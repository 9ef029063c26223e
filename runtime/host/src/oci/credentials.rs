//! What a registry is shown.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A secret text: shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the wire only.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// What is shown to one registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Credentials {
    /// Nothing.
    #[default]
    Anonymous,
    /// User name and password.
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: Secret,
    },
    /// A refresh token, exchanged at the registry's token service.
    IdentityToken {
        /// The token.
        token: Secret,
    },
    /// An access token, shown to the registry as it is.
    RegistryToken {
        /// The token.
        token: Secret,
    },
}

impl Credentials {
    /// A digest that differs between credentials: for keys of caches. It is not for logs, since a short password could be guessed
    /// from it.
    #[must_use]
    pub fn identity(&self) -> String {
        let (kind, user, secret) = match self {
            Self::Anonymous => ("anonymous", "", ""),
            Self::Basic { username, password } => ("basic", username.as_str(), password.expose()),
            Self::IdentityToken { token } => ("identity", "", token.expose()),
            Self::RegistryToken { token } => ("registry", "", token.expose()),
        };
        let mut hash = Sha256::new();
        for part in ["weir.dev/oci-credentials", kind, user, secret] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        format!("sha256:{}", hex::encode(hash.finalize()))
    }

    /// Whether there is anything to show.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// `text` without the secret, should a server have sent it back.
    pub(super) fn scrub(&self, text: &str) -> String {
        let secret = match self {
            Self::Anonymous => return text.to_owned(),
            Self::Basic { password, .. } => password.expose(),
            Self::IdentityToken { token } | Self::RegistryToken { token } => token.expose(),
        };
        if secret.is_empty() { text.to_owned() } else { text.replace(secret, "<redacted>") }
    }
}
