//! The extension a DataPlane names: accepted, resolvable, usable?

use weir_api::condition::reasons;

use super::super::snapshot::{Lookup, Snapshot};
use crate::konnect::{self, Facts, Unusable};

/// What the extension means for the pod template.
#[derive(Debug, Clone, PartialEq)]
pub enum Konnect {
    /// The DataPlane names no extension.
    None,
    /// The extension's kind or group is not served: AcceptedExtensions=False, the pod template is held.
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
    },
}

pub(crate) fn check(snapshot: &Snapshot) -> Konnect {
    let Some(reference) = snapshot.data_plane.spec.extensions.as_ref().and_then(|e| e.first()) else { return Konnect::None };
    if reference.group != weir_api::keys::GATEWAY_OPERATOR_GROUP || reference.kind != "KonnectExtension" {
        return Konnect::NotAccepted {
            message: format!(
                "{}/{} {:?} is not served yet: use the token-free KonnectExtension of group {}; the Deployment is held, because a data \
                 plane without its Konnect environment would run on its own",
                reference.group,
                reference.kind,
                reference.name,
                weir_api::keys::GATEWAY_OPERATOR_GROUP
            ),
        };
    }
    let extension = match &snapshot.extension {
        Lookup::Found(extension) => extension,
        Lookup::Missing | Lookup::Unknown => {
            let namespace = snapshot.data_plane.metadata.namespace.as_deref().unwrap_or_default();
            return Konnect::Blocked {
                reason: reasons::INVALID_EXTENSION,
                message: format!(
                    "spec.extensions[0]: KonnectExtension {namespace}/{} does not exist or was refused: create or mend it, or remove the reference",
                    reference.name
                ),
            };
        }
    };
    let facts = match konnect::token_free(extension) {
        Ok(facts) => facts,
        Err(unusable) => return blocked(unusable),
    };
    let secret = snapshot.secrets.get(&facts.certificate_secret).unwrap_or(&Lookup::Unknown);
    match konnect::certificate_digest(&facts, secret) {
        Ok(certificate_digest) => Konnect::Ready { facts: Box::new(facts), certificate_digest },
        Err(unusable) => blocked(unusable),
    }
}

fn blocked(unusable: Unusable) -> Konnect {
    Konnect::Blocked { reason: unusable.reason, message: unusable.message }
}
