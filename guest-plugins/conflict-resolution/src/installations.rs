//! An installation that several gateways claim. A plugin's files can be in many gateways at once, so this kind alone has rules that
//! let claims stand side by side.

use weir_policy_sdk::{
    Severity,
    conflict_resolution::{Claim, Conflict, Resolution, Verdict, resolution},
    finding,
};

use crate::{
    about,
    choose::{Choice, all},
    empty, keep_oldest,
    settings::InstallationRule,
};

/// Resolves a conflict about an installation of a namespace.
pub(crate) fn resolve(conflict: &Conflict, namespace: &str, rule: InstallationRule) -> Resolution {
    // One claim is no conflict, but where it comes from may matter.
    if conflict.claims.len() == 1 && rule != InstallationRule::SameNamespace {
        return shared(conflict);
    }
    match rule {
        InstallationRule::Shared => shared(conflict),
        InstallationRule::FirstOwner => keep_oldest(conflict),
        InstallationRule::SameNamespace => same_namespace(conflict, namespace),
        InstallationRule::Reject => resolution(Verdict::Reject(about::rejected(conflict)), Vec::new()),
        InstallationRule::Hold => resolution(Verdict::Hold(about::held(conflict)), Vec::new()),
    }
}

/// Nobody is left out, so there is nothing to tell.
fn shared(conflict: &Conflict) -> Resolution {
    if conflict.claims.is_empty() {
        return empty(conflict);
    }
    resolution(keep_some(all(conflict)), Vec::new())
}

fn same_namespace(conflict: &Conflict, namespace: &str) -> Resolution {
    if conflict.claims.is_empty() {
        return empty(conflict);
    }
    let (kept, left_out): (Vec<_>, Vec<_>) = all(conflict).partition(|choice| is_in(choice.claim, namespace));
    if kept.is_empty() {
        return resolution(Verdict::Reject(about::all_elsewhere(conflict, namespace)), Vec::new());
    }
    let findings = if left_out.is_empty() {
        Vec::new()
    } else {
        let message = about::elsewhere(conflict, namespace, left_out.iter().map(|choice| choice.claim));
        vec![finding(Severity::Warning, "OtherNamespace", about::path(conflict), message)]
    };
    resolution(keep_some(kept.into_iter()), findings)
}

fn keep_some<'a>(choices: impl Iterator<Item = Choice<'a>>) -> Verdict {
    Verdict::KeepSome(choices.map(|choice| choice.index).collect())
}

/// Whether the claim's `namespace/name` is in a namespace. Who does not say where they are is not in it.
fn is_in(claim: &Claim, namespace: &str) -> bool {
    claim.who.split_once('/').is_some_and(|(of_claim, _)| of_claim == namespace)
}
