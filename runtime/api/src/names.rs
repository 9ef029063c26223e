//! The API server's rules for names, as pure checks.
//!
//! They are what `metav1validation` and the core validators apply, so a manifest is refused here for the same text the API server
//! would refuse it for, and nothing else.

/// Longest DNS label, label value and name part of a label key.
const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN_MAX: usize = 253;
/// Longest IANA service name.
const PORT_NAME_MAX: usize = 15;
/// Longest environment variable name that is accepted. Kubernetes has no bound of its own; this one keeps a name readable in a message.
const ENV_NAME_MAX: usize = 256;

fn is_lower_alnum(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether every byte passes `inner` and the outer two pass `edge`. Empty text does not.
fn is_framed(text: &str, edge: fn(u8) -> bool, inner: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    edge(*first) && edge(*last) && bytes.iter().all(|byte| inner(*byte))
}

fn is_dns_part(text: &str) -> bool {
    is_framed(text, is_lower_alnum, |byte| is_lower_alnum(byte) || byte == b'-')
}

/// A DNS-1123 label: lower-case letters, digits and `-`, no `-` at either end, 1 to 63 bytes.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_dns_part(text)
}

/// A DNS-1123 subdomain: labels joined by `.`, at most 253 bytes.
///
/// As in Kubernetes only the whole is bounded: one part may be longer than 63 bytes.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_dns_part)
}

/// A DNS-1035 label, the form of a Service name: like a DNS-1123 label, but the first byte is a letter.
pub fn is_dns_1035(text: &str) -> bool {
    is_dns_label(text) && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

/// A C identifier of 1 to 256 bytes, the form every shell and every container runtime accepts for an environment variable.
pub fn is_env_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= ENV_NAME_MAX
        && bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn is_qualified_part(text: &str) -> bool {
    text.len() <= LABEL_MAX
        && is_framed(text, |byte| byte.is_ascii_alphanumeric(), |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A label value: empty, or 1 to 63 letters, digits, `-`, `_` and `.` with a letter or digit at both ends.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_part(text)
}

/// A label or annotation key: a name part of 1 to 63 bytes, optionally after a DNS subdomain and one `/`.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        // A second `/` ends up in the name part, which does not allow it.
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(text),
    }
}

/// An IANA service name, the form of a container port name: 1 to 15 lower-case letters, digits and `-`, at least one letter, no `-`
/// at either end and no two in a row.
pub fn is_port_name(text: &str) -> bool {
    text.len() <= PORT_NAME_MAX && is_dns_part(text) && !text.contains("--") && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(rule(text), "{text:?} must pass");
        }
        for text in bad {
            assert!(!rule(text), "{text:?} must not pass");
        }
    }

    #[test]
    fn dns_label() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        check(is_dns_label, &["a", "0", "a-b", "a--b", &longest], &["", "-a", "a-", "A", "a.b", "a_b", "ä", "a\n", " a", &too_long]);
    }

    #[test]
    fn dns_subdomain() {
        let (longest, too_long) = (format!("{}.b", "a".repeat(251)), "a".repeat(254));
        check(is_dns_subdomain, &["a", "a.b", "1.2", "a-b.c", &longest], &["", ".", "a.", ".a", "a..b", "a.-b", "A.b", &too_long]);
    }

    #[test]
    fn dns_1035() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        check(is_dns_1035, &["a", "a1", "a-1", &longest], &["", "1a", "-a", "a-", "A", "a.b", &too_long]);
    }

    #[test]
    fn env_name() {
        let (longest, too_long) = ("A".repeat(256), "A".repeat(257));
        check(
            is_env_name,
            &["A", "_", "a1", "KONG_PROXY_LISTEN", &longest],
            &["", "1A", "A-B", "A.B", "A=B", "A B", "Ä", "A\n", &too_long],
        );
    }

    #[test]
    fn label_value() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        check(is_label_value, &["", "a", "A_b.c-d", "1", &longest], &["-a", "a.", "_a", "a b", "a/b", "ä", &too_long]);
    }

    #[test]
    fn label_key() {
        let (name, long_name) = ("a".repeat(63), "a".repeat(64));
        let (prefix, long_prefix) = (format!("{}/a", "a".repeat(253)), format!("{}/a", "a".repeat(254)));
        check(
            is_label_key,
            &["a", "A_b.c", "konghq.com/secret", &name, &prefix],
            &["", "/a", "a/", "a/b/c", "A.b/c", "-a", &long_name, &long_prefix],
        );
    }

    #[test]
    fn port_name() {
        check(
            is_port_name,
            &["http", "a", "1a", "a-b-c", "fifteen-letters"],
            &["", "80", "1-2", "a--b", "-a", "a-", "Http", "a_b", "sixteen-letters-"],
        );
        check(is_port_name, &[], &["abcdefghijklmnop"]);
    }
}
