//! Names that flags give. What cannot be the name of anything in a cluster is refused at the start, not by the first request that has it.

use weir_api::names;

/// A namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let rule = "a namespace has 1 to 63 lower-case letters, digits and `-`, and a letter or digit at both ends";
    checked(text, names::is_dns_label(text), rule)
}

/// A namespace, or nothing: an environment variable that is empty gives one empty value.
pub(crate) fn namespace_if_any(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { namespace(text) }
}

/// Name of a Lease or a Secret.
pub(crate) fn object(text: &str) -> Result<String, String> {
    let rule =
        "a name has at most 253 lower-case letters, digits, `-` and `.`, and a letter or digit at both ends of each part between dots";
    checked(text, names::is_dns_subdomain(text), rule)
}

/// A project of `weir policy new`: it becomes the name of a crate.
pub(crate) fn project(text: &str) -> Result<String, String> {
    let rule = "a name has 1 to 63 lower-case letters, digits and `-`, begins with a letter, and is none of the project's own crates";
    let own = ["weir-policy-sdk", "konnect-env", "conflict-resolution", "plugin-packaging", "test", "core", "std", "alloc", "serde"];
    checked(text, names::is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase()) && !own.contains(&text), rule)
}

/// Key of a label.
pub(crate) fn label_key(text: &str) -> Result<String, String> {
    let rule =
        "a label key has at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends, and may follow a DNS name and `/`";
    checked(text, names::is_label_key(text), rule)
}

/// Value of a label; the name of a cluster is written as one.
pub(crate) fn label_value(text: &str) -> Result<String, String> {
    let rule = "it has at most 63 letters, digits, `-`, `_` and `.`, and a letter or digit at both ends";
    checked(text, names::is_label_value(text), rule)
}

/// A label.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    let value = label_value(value).map_err(|rule| format!("the value of {key:?}: {rule}"))?;
    Ok((label_key(key)?, value))
}

fn checked(text: &str, is_good: bool, rule: &str) -> Result<String, String> {
    // What was given, and where, is said before.
    if is_good { Ok(text.to_owned()) } else { Err(rule.to_owned()) }
}
