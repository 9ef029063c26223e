//! Small constructors, and the host's limits where exceeding them would throw away a good answer.

use crate::{EnvVar, Finding, Refusal, Severity};

/// Longest message that the host accepts, bytes. [`finding`] and [`refuse`] shorten what is longer.
pub const MAX_MESSAGE: usize = 1024;

/// Longest path of a finding, bytes.
const MAX_PATH: usize = 512;

/// Something a person should know. `code` is upper camel case and constant, `path` names a field or is empty.
///
/// ```
/// use weir_policy_sdk::{Severity, finding};
/// let it = finding(Severity::Warning, "UserOverride", "env.KONG_ROLE", "the user's value wins");
/// assert_eq!(it.path, "env.KONG_ROLE");
/// ```
pub fn finding(severity: Severity, code: &str, path: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding {
        severity,
        code: code.to_owned(),
        path: cut(&path.into(), MAX_PATH),
        message: cut(&message.into(), MAX_MESSAGE),
        extensions: Vec::new(),
    }
}

/// A no. `code` is upper camel case and constant; the message says what is wrong and what to change.
///
/// ```
/// let no = weir_policy_sdk::refuse("UnknownClusterType", "cluster type \"x\" is not known; update the policy");
/// assert_eq!(no.code, "UnknownClusterType");
/// ```
pub fn refuse(code: &str, message: impl Into<String>) -> Refusal {
    Refusal { code: code.to_owned(), message: cut(&message.into(), MAX_MESSAGE), extensions: Vec::new() }
}

/// A variable with a literal value.
///
/// ```
/// assert_eq!(weir_policy_sdk::env_var("KONG_ROLE", "data_plane").value, "data_plane");
/// ```
pub fn env_var(name: impl Into<String>, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.into(), value: value.into(), extensions: Vec::new() }
}

/// Whether the host takes `name` as the name of a variable: a C identifier.
///
/// ```
/// assert!(weir_policy_sdk::is_env_name("KONG_ROLE"));
/// assert!(!weir_policy_sdk::is_env_name("1 BAD="));
/// ```
#[must_use]
pub fn is_env_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `text` without control characters and at most `most` bytes long; an ellipsis shows that something is missing.
///
/// ```
/// assert_eq!(weir_policy_sdk::cut("abcdefgh", 7), "abcd…");
/// assert_eq!(weir_policy_sdk::cut("a\nb", 7), "ab");
/// ```
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    const ELLIPSIS: char = '…';
    let mut out: String = text.chars().filter(|c| !c.is_control()).collect();
    if out.len() > most {
        while out.len() + ELLIPSIS.len_utf8() > most && out.pop().is_some() {}
        out.push(ELLIPSIS);
    }
    out
}
