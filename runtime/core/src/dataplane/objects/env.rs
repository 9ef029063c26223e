//! Order of variables: by name, so that a takeover rolls no pods, except that a variable that another one uses as `$(NAME)` comes first.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::EnvVar;

/// Longest name that a reference is searched for, bytes.
const MAX_NAME: usize = 257;

/// Orders variables. Names are unique. References in a circle end somewhere in it: Kubernetes leaves
/// one of them unexpanded whatever the order.
#[must_use]
pub fn order(env: Vec<EnvVar>) -> Vec<EnvVar> {
    let by_name: BTreeMap<String, EnvVar> = env.into_iter().map(|var| (var.name.clone(), var)).collect();
    let mut done = BTreeSet::new();
    let mut out = Vec::with_capacity(by_name.len());
    for start in by_name.keys() {
        // Depth first without recursion: untrusted input decides the depth.
        let mut stack = vec![(start.as_str(), false)];
        let mut open = BTreeSet::new();
        while let Some((name, ready)) = stack.pop() {
            if done.contains(name) {
                continue;
            }
            let Some(var) = by_name.get(name) else { continue };
            if ready {
                done.insert(name);
                out.push(var.clone());
                continue;
            }
            if !open.insert(name) {
                continue;
            }
            stack.push((name, true));
            let mut used = references(var.value.as_deref().unwrap_or_default());
            used.reverse();
            for reference in used {
                if let Some((key, _)) = by_name.get_key_value(reference)
                    && !open.contains(key.as_str())
                {
                    stack.push((key, false));
                }
            }
        }
    }
    out
}

/// Names used as `$(NAME)` in a value, sorted; `$$(NAME)` is an escape.
fn references(value: &str) -> Vec<&str> {
    let mut found = BTreeSet::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        let after = rest.get(at + 1..).unwrap_or_default();
        if let Some(inner) = after.strip_prefix('(') {
            // A name is at most 256 bytes; looking further would make hostile values quadratic.
            if let Some(end) = inner.bytes().take(MAX_NAME).position(|byte| byte == b')') {
                found.extend(inner.get(..end));
            }
            rest = inner;
        } else {
            // `$$` escapes: skip both.
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pairs: &[(&str, &str)]) -> Vec<String> {
        let env = pairs.iter().map(|(n, v)| EnvVar { name: (*n).into(), value: Some((*v).into()), value_from: None }).collect();
        order(env).into_iter().map(|var| var.name).collect()
    }

    #[test]
    fn a_used_variable_precedes_its_user() {
        assert_eq!(names(&[("B", "1"), ("A", "$(C)"), ("C", "$(D)"), ("D", "x")]), ["D", "C", "A", "B"]);
        assert_eq!(names(&[("B", "x"), ("A", "$$(B)")]), ["A", "B"], "an escape is no use");
        assert_eq!(names(&[("A", "$(B)"), ("B", "$(A)"), ("C", "")]), ["B", "A", "C"], "a circle ends");
        assert_eq!(names(&[("A", "$(A)$(MISSING)")]), ["A"]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let mut env: Vec<EnvVar> =
            (0..20_000).map(|i| EnvVar { name: format!("V{i:06}"), value: Some(format!("$(V{:06})", i + 1)), value_from: None }).collect();
        env.reverse();
        let ordered = order(env);
        assert_eq!(ordered.len(), 20_000);
        assert_eq!(ordered.first().unwrap().name, "V019999");
    }
}
