//! Words about a conflict. They name parties and never values.

use weir_policy_sdk::{
    conflict_resolution::{Claim, Conflict, Origin, SubjectKind},
    cut,
};

/// Most parties that a message names.
const MAX_NAMED: usize = 5;
/// Longest name in a message, bytes.
const MAX_NAME: usize = 120;
/// Longest name of a namespace, bytes.
const MAX_NAMESPACE: usize = 63;

/// The field that a finding is about.
pub(crate) fn path(conflict: &Conflict) -> String {
    let list = match &conflict.kind {
        SubjectKind::EnvVar => "env",
        SubjectKind::PluginName | SubjectKind::BundledPlugin => "plugins",
        SubjectKind::PluginInstallation => "pluginInstallations",
        SubjectKind::Volume => "volumes",
        SubjectKind::VolumeMount => "volumeMounts",
        SubjectKind::Other(kind) => kind,
    };
    format!("{}.{}", cut(list, MAX_NAME), conflict.subject)
}

/// The subject with its kind.
pub(crate) fn subject(conflict: &Conflict) -> String {
    let kind = match &conflict.kind {
        SubjectKind::EnvVar => "variable",
        SubjectKind::PluginName => "plugin name",
        SubjectKind::BundledPlugin => "bundled plugin",
        SubjectKind::PluginInstallation => "plugin installation",
        SubjectKind::Volume => "volume",
        SubjectKind::VolumeMount => "mount path",
        SubjectKind::Other(kind) => kind,
    };
    format!("{} {}", cut(kind, MAX_NAME), cut(&conflict.subject, MAX_NAME))
}

/// One party.
pub(crate) fn party(claim: &Claim) -> String {
    let origin = match &claim.origin {
        Origin::User => "user",
        Origin::Policy => "policy",
        Origin::Generated => "generated",
        Origin::Default => "default",
        Origin::Other(origin) => origin,
    };
    format!("{} ({})", cut(&claim.who, MAX_NAME), cut(origin, MAX_NAME))
}

/// `, not A, B and 3 more`, or nothing.
pub(crate) fn left_out<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let parties = list(claims);
    if parties.is_empty() { parties } else { format!(", not {parties}") }
}

/// Message of rule reject.
pub(crate) fn rejected(conflict: &Conflict) -> String {
    format!(
        "{} is claimed by {}, and the rule of this policy is reject: remove the claims but one, or give {} another rule in the settings",
        subject(conflict),
        list(conflict.claims.iter()),
        setting(conflict),
    )
}

/// Message of rule hold.
pub(crate) fn held(conflict: &Conflict) -> String {
    format!(
        "waiting: {} is claimed by {}, and the rule of this policy is hold: remove the claims but one, or give {} another rule in the settings",
        subject(conflict),
        list(conflict.claims.iter()),
        setting(conflict),
    )
}

/// Message about a kind that a newer contract brought.
pub(crate) fn unknown_kind(conflict: &Conflict) -> String {
    format!(
        "waiting: this policy does not know what to do about {}, claimed by {}; remove the claims but one, or use a newer policy",
        subject(conflict),
        list(conflict.claims.iter()),
    )
}

/// Message of rule sameNamespace about claims that it leaves out.
pub(crate) fn elsewhere<'a>(conflict: &Conflict, namespace: &str, claims: impl Iterator<Item = &'a Claim>) -> String {
    format!(
        "{}: the rule of this policy is sameNamespace: only claims from namespace {} are kept{}",
        subject(conflict),
        cut(namespace, MAX_NAMESPACE),
        left_out(claims),
    )
}

/// Message of rule sameNamespace when it would leave out everybody.
pub(crate) fn all_elsewhere(conflict: &Conflict, namespace: &str) -> String {
    format!(
        "{} is claimed by {}, none of them in its namespace {} as rule sameNamespace wants: create the installation in their \
         namespaces, or change pluginInstallations in the settings",
        subject(conflict),
        list(conflict.claims.iter()),
        cut(namespace, MAX_NAMESPACE),
    )
}

/// The setting that has the rule. Only variables have rules of their own; of the other kinds one rule serves all.
fn setting(conflict: &Conflict) -> String {
    match &conflict.kind {
        SubjectKind::EnvVar => cut(&format!("env.{}", conflict.subject), MAX_NAME),
        SubjectKind::PluginName => "pluginNames".to_owned(),
        SubjectKind::BundledPlugin => "bundledPlugins".to_owned(),
        SubjectKind::PluginInstallation => "pluginInstallations".to_owned(),
        SubjectKind::Volume => "volumes".to_owned(),
        SubjectKind::VolumeMount => "mounts".to_owned(),
        // No setting is about a kind that this policy does not know.
        SubjectKind::Other(_) => "default".to_owned(),
    }
}

fn list<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let parties: Vec<String> = claims.map(party).collect();
    let more = parties.len().saturating_sub(MAX_NAMED);
    let named = parties.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
