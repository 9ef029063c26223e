//! Whether the two Secrets of a plugin can be used now.

use jiff::Timestamp;

use super::{
    super::{
        Key,
        reason::{Problem, Reason},
        shown,
        snapshot::{Certificates, SecretFacts, Snapshot, Validity},
        validate::Wanted,
    },
    Material,
};

/// One side, in words.
struct Side<'a> {
    /// `client` or `server`.
    what: &'static str,
    missing: &'static str,
    invalid: &'static str,
    secret: &'a Key,
    field: &'static str,
}

impl Side<'_> {
    fn missing(&self) -> Problem {
        let message = format!("annotation {}: Secret {} does not exist: create it, or name another one", self.field, shown(self.secret));
        Problem { reason: Reason::SecretMissing, event: self.missing, message }
    }

    fn invalid(&self, key: &str, why: &str) -> Problem {
        let message = format!("annotation {}: key {key} of Secret {}: {why}", self.field, shown(self.secret));
        Problem { reason: Reason::CertInvalid, event: self.invalid, message }
    }

    fn expired(&self, ends: Timestamp) -> Problem {
        let message =
            format!("annotation {}: the {} certificate in Secret {} ended at {ends}: renew it", self.field, self.what, shown(self.secret));
        Problem { reason: Reason::CertExpired, event: Reason::CertExpired.as_str(), message }
    }

    fn early(&self, begins: Timestamp) -> Problem {
        self.invalid("tls.crt", &format!("the {} certificate is valid only from {begins}: check the clocks, or replace it", self.what))
    }
}

fn found<'a>(snapshot: &'a Snapshot, side: &Side<'_>) -> Result<(&'a SecretFacts, &'a Certificates), Problem> {
    let facts = snapshot.secrets.get(side.secret).ok_or_else(|| side.missing())?;
    let certificates = facts.certificates.as_ref().map_err(|why| side.invalid("tls.crt", why))?;
    Ok((facts, certificates))
}

/// What the operator shows: the first certificate, and its key.
pub(super) fn client(snapshot: &Snapshot, wanted: &Wanted) -> Result<Material, Problem> {
    let side = Side {
        what: "client",
        missing: "ClientSecretNotFound",
        invalid: "InvalidClientCertificate",
        secret: &wanted.client_secret,
        field: wanted.fields.0,
    };
    let (facts, certificates) = found(snapshot, &side)?;
    facts.key.as_ref().map_err(|why| side.invalid("tls.key", why))?;
    let leaf = certificates.validity.first().ok_or_else(|| side.invalid("tls.crt", "it holds no certificate"))?;
    if leaf.ends <= snapshot.now {
        return Err(side.expired(leaf.ends));
    }
    if leaf.begins > snapshot.now {
        return Err(side.early(leaf.begins));
    }
    let digest = facts.client_digest().unwrap_or_default();
    Ok(Material { secret: wanted.client_secret.clone(), digest, ends: leaf.ends, renew_by: leaf.ends })
}

/// What the operator trusts: any of the certificates, so that an old and a new one may stand side by side while they are exchanged.
pub(super) fn server(snapshot: &Snapshot, wanted: &Wanted) -> Result<Material, Problem> {
    let side = Side {
        what: "server",
        missing: "ServerSecretNotFound",
        invalid: "InvalidServerCertificate",
        secret: &wanted.server_secret,
        field: wanted.fields.1,
    };
    let (facts, certificates) = found(snapshot, &side)?;
    let authorities = match &facts.authorities {
        None => None,
        Some(read) => Some(read.as_ref().map_err(|why| side.invalid("ca.crt", why))?),
    };
    let own = certificates.validity.iter();
    let renew_by = own.clone().map(|v| v.ends).max().ok_or_else(|| side.invalid("tls.crt", "it holds no certificate"))?;
    let all: Vec<&Validity> = own.chain(authorities.iter().flat_map(|a| &a.validity)).collect();
    let ends = all.iter().map(|v| v.ends).max().unwrap_or(renew_by);
    if ends <= snapshot.now {
        return Err(side.expired(ends));
    }
    let begins = all.iter().filter(|v| v.ends > snapshot.now).map(|v| v.begins).min();
    if let Some(begins) = begins.filter(|begins| *begins > snapshot.now) {
        return Err(side.early(begins));
    }
    let digest = facts.server_digest().unwrap_or_default();
    Ok(Material { secret: wanted.server_secret.clone(), digest, ends, renew_by })
}
