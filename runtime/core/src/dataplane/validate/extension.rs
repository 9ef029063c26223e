//! The extension a DataPlane names: accepted, resolvable, usable?

use jiff::Timestamp;
use weir_api::condition::reasons;

use super::super::snapshot::{Lookup, SecretFacts, Snapshot};
use crate::konnect::{self, Facts, Sort, Unusable};

/// What the extension means for the pod template.
#[derive(Debug, Clone, PartialEq)]
pub enum Konnect {
    /// The DataPlane names no extension.
    None,
    /// The extension's kind or group is not known: AcceptedExtensions=False, the pod template is held.
    NotAccepted {
        /// For AcceptedExtensions.
        message: String,
    },
    /// The extension cannot be used now: KonnectExtensionApplied=False, the last answer stays in force.
    Blocked {
        /// Reason of KonnectExtensionApplied.
        reason: &'static str,
        /// Names the object, the field and the cure.
        message: String,
    },
    /// The policy can be asked.
    Ready {
        /// What it is asked about.
        facts: Box<Facts>,
        /// Digest of the certificate; none when nobody can know.
        certificate_digest: Option<String>,
        /// When it ends; none when nobody can know.
        certificate_ends: Option<Timestamp>,
    },
}

pub(crate) fn check(snapshot: &Snapshot) -> Konnect {
    let Some(reference) = snapshot.data_plane.spec.extensions.as_ref().and_then(|e| e.first()) else { return Konnect::None };
    let Some(sort) = Sort::of(reference) else {
        return Konnect::NotAccepted {
            message: format!(
                "{}/{} {:?} is not known: name a KonnectExtension of group {} or {}; the Deployment is held, because a data plane without its \
                 Konnect environment would run on its own",
                reference.group,
                reference.kind,
                reference.name,
                Sort::TokenFree.group(),
                Sort::ApiDriven.group()
            ),
        };
    };
    let extension = match &snapshot.extension {
        Lookup::Found(extension) => extension,
        Lookup::Missing | Lookup::Unknown => {
            return Konnect::Blocked { reason: reasons::INVALID_EXTENSION, message: missing(snapshot, sort, &reference.name) };
        }
    };
    let facts = match extension.facts() {
        Ok(facts) => facts,
        Err(unusable) => return blocked(unusable),
    };
    let secret = snapshot.secrets.get(&facts.certificate_secret).unwrap_or(&Lookup::Unknown);
    match konnect::certificate_digest(&facts, secret) {
        Ok(certificate_digest) => Konnect::Ready { facts: Box::new(facts), certificate_digest, certificate_ends: ends(secret) },
        Err(unusable) => blocked(unusable),
    }
}

fn ends(secret: &Lookup<SecretFacts>) -> Option<Timestamp> {
    match secret {
        Lookup::Found(secret) => secret.ends,
        Lookup::Missing | Lookup::Unknown => None,
    }
}

fn missing(snapshot: &Snapshot, sort: Sort, name: &str) -> String {
    let namespace = snapshot.data_plane.metadata.namespace.as_deref().unwrap_or_default();
    let (group, other) = (sort.group(), sort.other().group());
    let what = format!("spec.extensions[0]: KonnectExtension {namespace}/{name}");
    if snapshot.namesake {
        let default = match sort {
            Sort::TokenFree => ", which a reference without a group means",
            Sort::ApiDriven => "",
        };
        return format!(
            "{what} does not exist in group {group}{default}; group {other} has one of that name: if it is meant, set group: {other}"
        );
    }
    match (sort, &snapshot.extension) {
        (Sort::ApiDriven, Lookup::Unknown) => {
            format!(
                "{what}: the kind of group {group} is not served here, or may not be read: install Kong's CRD, and the operator's RBAC manifests"
            )
        }
        (Sort::TokenFree, _) | (Sort::ApiDriven, Lookup::Missing | Lookup::Found(_)) => {
            format!("{what} does not exist or was refused: create or mend it, or remove the reference")
        }
    }
}

fn blocked(unusable: Unusable) -> Konnect {
    Konnect::Blocked { reason: unusable.reason, message: unusable.message }
}
