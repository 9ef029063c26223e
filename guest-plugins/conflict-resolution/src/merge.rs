//! Merging the values of a variable that is a list.

use weir_policy_sdk::conflict_resolution::{Claim, ClaimValue, Conflict, Origin, SubjectKind};

/// Longest value that the host accepts, bytes.
const MAX_VALUE: usize = 32 * 1024;

/// What came of it.
pub(crate) enum Merged<'a> {
    /// A value of several claims.
    Value {
        /// The value.
        text: String,
        /// Claims that were not part of it.
        left_out: Vec<&'a Claim>,
    },
    /// Only one claim counts.
    Single,
    /// There is no merged value; says why.
    Impossible(&'static str),
}

/// Merges all claims of a variable. Where the user says something, the operator's defaults do not count: a user who left `bundled`
/// out meant it.
pub(crate) fn merge(conflict: &Conflict) -> Merged<'_> {
    if conflict.kind != SubjectKind::EnvVar {
        return Merged::Impossible("only variables can be merged");
    }
    let Some(claims) = texts(conflict) else {
        return Merged::Impossible("a value that comes from another object cannot be merged");
    };
    let user_speaks = claims.iter().any(|(claim, _)| claim.origin == Origin::User);
    let (counted, left_out): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|(claim, _)| !(user_speaks && claim.origin == Origin::Default));
    if counted.len() < 2 {
        return Merged::Single;
    }
    // The user's entries first, whatever the order of the question; sorting is stable.
    let mut counted = counted;
    counted.sort_by_key(|(claim, _)| claim.origin != Origin::User);

    let text = if conflict.subject.ends_with("PACKAGE_PATH") || conflict.subject.ends_with("PACKAGE_CPATH") {
        templates(counted.iter().map(|(_, text)| *text))
    } else if conflict.subject == "KONG_PLUGINS" {
        // `off` is not a plugin but Kong's word for none at all.
        if counted.iter().any(|(claim, text)| claim.origin == Origin::User && is_off(text)) {
            return Merged::Single;
        }
        let names = entries(counted.iter().flat_map(|(_, text)| text.split(',')).filter(|entry| !is_off(entry)), ",");
        if names.is_empty() { "off".to_owned() } else { names }
    } else {
        entries(counted.iter().flat_map(|(_, text)| text.split(',')), ",")
    };
    if text.len() > MAX_VALUE {
        return Merged::Impossible("the merged value would be over 32 KiB");
    }
    Merged::Value { text, left_out: left_out.into_iter().map(|(claim, _)| claim).collect() }
}

/// The claims with their literal values; none if one has another value.
fn texts(conflict: &Conflict) -> Option<Vec<(&Claim, &str)>> {
    conflict
        .claims
        .iter()
        .map(|claim| match &claim.value {
            ClaimValue::Text(text) => Some((claim, text.as_str())),
            ClaimValue::Object(_) | ClaimValue::Other(_) => None,
        })
        .collect()
}

fn is_off(text: &str) -> bool {
    text.trim() == "off"
}

/// Trimmed, without empty ones, the first occurrence of each.
fn entries<'a>(parts: impl Iterator<Item = &'a str>, separator: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        if !seen.contains(&part) {
            seen.push(part);
        }
    }
    seen.join(separator)
}

/// Templates of Lua's package path. `;;` stands for the default path and is wanted once, after everything else.
fn templates<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> String {
    let default_path = texts.clone().any(|text| text.contains(";;"));
    let own = entries(texts.flat_map(|text| text.split(';')), ";");
    if default_path { own + ";;" } else { own }
}
