//! What comes in through others: the whole tree of normal dependencies of the pure crates.

use anyhow::{Context, Result};

/// Crates whose whole tree is looked at.
pub(super) const PURE: [&str; 2] = ["weir-api", "weir-core"];

/// A runtime, a client, an engine: with one of them in the tree, the crate can do more than compute.
const FORBIDDEN: [&str; 7] = ["tokio", "hyper", "wasmtime", "kube-client", "kube-runtime", "tonic", "reqwest"];

/// Violations in the output of `cargo tree --prefix depth --format " {p}"`, each with the way in.
pub(super) fn check(tree: &str) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    let mut way: Vec<&str> = Vec::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let (depth, name) = parse(line)
            .with_context(|| format!("cannot read this line of `cargo tree`: {line:?}; adapt runtime/xtask/src/layers/tree.rs"))?;
        way.truncate(depth);
        way.push(name);
        // A repeated subtree is printed once; the first way in is enough to act on.
        if FORBIDDEN.contains(&name) {
            violations.push(format!("{} must not depend on {name}: {}", way.first().unwrap_or(&name), way.join(" -> ")));
        }
    }
    Ok(violations)
}

/// `2 serde v1.0.0 (*)` is serde at depth 2.
fn parse(line: &str) -> Option<(usize, &str)> {
    let mut words = line.split_whitespace();
    let depth = words.next()?.parse().ok()?;
    Some((depth, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_crate_is_shown_with_its_way_in() {
        let tree = "0 weir-core v0.1.0 (/somewhere)\n1 kube v5.0.0\n2 kube-core v5.0.0\n2 kube-client v5.0.0\n3 hyper v1.0.0\n1 serde v1.0.0 (*)\n";
        assert_eq!(
            check(tree).unwrap(),
            [
                "weir-core must not depend on kube-client: weir-core -> kube -> kube-client",
                "weir-core must not depend on hyper: weir-core -> kube -> kube-client -> hyper",
            ]
        );
    }

    #[test]
    fn a_pure_tree_passes_and_names_are_whole() {
        assert!(check("0 weir-api v0.1.0\n1 tokio-like v1.0.0\n2 hyperbole v1.0.0 (proc-macro)\n").unwrap().is_empty());
    }

    #[test]
    fn unknown_output_is_an_error_not_a_pass() {
        assert!(check("weir-api v0.1.0\n└── tokio v1\n").is_err());
    }
}
