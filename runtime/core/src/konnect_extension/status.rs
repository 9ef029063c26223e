//! Status of a token-free KonnectExtension: who uses it, and whether it can be used.

use weir_api::{
    condition::{reasons, types},
    konnect_extension::{DataPlaneRef, KonnectExtensionStatus},
};

use super::{Snapshot, UserRef};
use crate::{
    conditions::{self, Said, say},
    events::Event,
    konnect,
};

/// Users that a message names; `status.dataPlaneRefs` has all of them.
const NAMED_USERS: usize = 10;

pub(super) fn build(snapshot: &Snapshot) -> KonnectExtensionStatus {
    let extension = &snapshot.extension;
    let previous = extension.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    let own = extension.metadata.namespace.as_deref().unwrap_or_default();
    let reference =
        |user: &UserRef| DataPlaneRef { name: user.name.clone(), namespace: (user.namespace != own).then(|| user.namespace.clone()) };
    let said = vec![ready(snapshot), in_use(snapshot, own)];
    KonnectExtensionStatus {
        data_plane_refs: (!snapshot.users.is_empty()).then(|| snapshot.users.iter().map(reference).collect()),
        conditions: Some(conditions::merge(previous, said, &[types::READY, types::IN_USE], extension.metadata.generation, snapshot.now)),
    }
}

/// What a person should hear about besides the condition: only what needs somebody.
pub(super) fn event(status: &KonnectExtensionStatus) -> Option<Event> {
    let ready = status.conditions.iter().flatten().find(|c| c.type_ == types::READY && c.status == "False")?;
    Some(Event::warning(&ready.reason, "The extension cannot be used", ready.message.clone()))
}

fn ready(snapshot: &Snapshot) -> Said {
    let usable = konnect::token_free(&snapshot.extension).and_then(|facts| {
        let digest = konnect::certificate_digest(&facts, &snapshot.secret)?;
        Ok((facts, digest))
    });
    match usable {
        Ok((_, Some(_))) => say(types::READY, true, reasons::READY, ""),
        Ok((facts, None)) => {
            let message = format!("Secret {:?} has not been looked at yet", facts.certificate_secret);
            say(types::READY, false, reasons::INVALID_SECRET, message)
        }
        Err(unusable) => say(types::READY, false, unusable.reason, unusable.message),
    }
}

fn in_use(snapshot: &Snapshot, own: &str) -> Said {
    if snapshot.users.is_empty() {
        return say(types::IN_USE, false, reasons::NOT_IN_USE, "no DataPlane names it");
    }
    let named: Vec<String> = snapshot.users.iter().take(NAMED_USERS).map(|user| shown(user, own)).collect();
    let more = match snapshot.users.len().saturating_sub(NAMED_USERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let lead = if snapshot.extension.metadata.deletion_timestamp.is_some() { "deletion waits for:" } else { "used by" };
    say(types::IN_USE, true, reasons::IN_USE, format!("{lead} {}{more}", named.join(", ")))
}

fn shown(user: &UserRef, own: &str) -> String {
    if user.namespace == own { user.name.clone() } else { format!("{}/{}", user.namespace, user.name) }
}
