//! Names of children: deterministic and DNS-1035, so that a second pass, a second replica and `weir plan` agree.

use uuid::Uuid;

use crate::hash;

const MAX: usize = 63;
const HASH_DIGITS: usize = 8;

/// `<prefix><name>` as a DNS-1035 label: `.` becomes `-`, and what is too long is cut and ends in a hash of the whole.
#[must_use]
pub fn child(prefix: &str, name: &str) -> String {
    fit(&format!("{prefix}{name}").replace('.', "-"), name)
}

/// `<base>-<suffix>`, cut where needed so that the suffix survives.
#[must_use]
pub fn suffixed(base: &str, suffix: &str) -> String {
    let room = MAX.saturating_sub(suffix.len() + 1);
    let head: String = base.chars().take(room).collect();
    format!("{}-{suffix}", head.trim_end_matches('-'))
}

fn fit(full: &str, name: &str) -> String {
    if full.len() <= MAX {
        return full.to_owned();
    }
    suffixed(full, &hash::short(name.as_bytes(), HASH_DIGITS))
}

/// The UID an object without a cluster has: UUIDv5 of kind, namespace and name.
#[must_use]
pub fn offline_uid(kind: &str, namespace: &str, name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("https://weir.dev/{kind}/{namespace}/{name}").as_bytes()).to_string()
}

/// The selector of an object that has neither one nor a UID: UUIDv5 of namespace and name.
#[must_use]
pub fn offline_selector(namespace: &str, name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{namespace}/{name}").as_bytes()).to_string()
}

/// The first 8 hexadecimal digits of a UID: the suffix when a planned name is held by a stranger.
#[must_use]
pub fn uid_suffix(uid: &str) -> String {
    let digits: String = uid.chars().filter(char::is_ascii_hexdigit).take(HASH_DIGITS).collect();
    if digits.len() == HASH_DIGITS { digits } else { hash::short(uid.as_bytes(), HASH_DIGITS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_become_dashes_and_long_names_keep_their_difference() {
        assert_eq!(child("dataplane-", "a.b"), "dataplane-a-b");
        let long = "x".repeat(63);
        let name = child("dataplane-ingress-", &long);
        assert_eq!(name.len(), 63);
        assert!(weir_api::names::is_dns_1035(&name), "{name}");
        assert_ne!(name, child("dataplane-ingress-", &format!("{}y", "x".repeat(62))));
    }

    #[test]
    fn a_suffix_survives_the_cut() {
        let name = suffixed(&"a".repeat(63), "0123abcd");
        assert!(name.ends_with("-0123abcd") && name.len() == 63, "{name}");
    }
}
