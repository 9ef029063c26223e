//! Who may depend on whom: `api <- core <- host <- operator <- cli`.

use anyhow::{Context, Result};
use serde::Deserialize;

/// The part of `cargo metadata --no-deps` that is looked at.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// What one member may depend on among the members.
enum Allowed {
    Only(&'static [&'static str]),
    /// At the top: it puts the others together.
    Any,
}

/// The direction. A member that is not here is a violation, so that a new crate gets its place by a decision.
const DIRECTION: [(&str, Allowed); 13] = [
    ("weir-api", Allowed::Only(&[])),
    ("weir-core", Allowed::Only(&["weir-api"])),
    // Generated messages: below everything that speaks to a remote plugin, and below the plugin of the tests.
    ("weir-proto", Allowed::Only(&[])),
    ("weir-host", Allowed::Only(&["weir-api", "weir-core", "weir-proto", "weir-sigstore", "weir-remote-plugin"])),
    ("weir-harness", Allowed::Only(&["weir-api", "weir-core", "weir-host"])),
    ("weir-operator", Allowed::Only(&["weir-api", "weir-core", "weir-host"])),
    ("weir-cli", Allowed::Any),
    // It builds what weir-host embeds, so it must compile before weir-host does.
    ("weir-xtask", Allowed::Only(&["weir-api", "weir-core", "weir-image"])),
    // Files and archives: below the task that makes the operator's image, and below what tests put on a node.
    ("weir-image", Allowed::Only(&[])),
    ("weir-tests", Allowed::Any),
    // For tests of the host, so it stands below it.
    ("weir-sigstore", Allowed::Only(&[])),
    // For tests of the host, too: a plugin of its own, which must not share code with what it tests.
    ("weir-remote-plugin", Allowed::Only(&["weir-proto"])),
    ("weir-testkit", Allowed::Only(&["weir-api", "weir-image"])),
];

/// Violations in the output of `cargo metadata --no-deps`. Dependencies of tests and build scripts count too: they decide what
/// must be compiled before what.
pub(super) fn check(metadata: &str) -> Result<Vec<String>> {
    let metadata: Metadata = serde_json::from_str(metadata)
        .context("cannot read the output of `cargo metadata`; adapt runtime/xtask/src/layers/manifests.rs")?;
    let members: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut violations = Vec::new();
    for package in &metadata.packages {
        match DIRECTION.iter().find(|(name, _)| *name == package.name) {
            None => {
                violations.push(format!("{} has no place in the direction; add it to runtime/xtask/src/layers/manifests.rs", package.name))
            }
            Some((_, Allowed::Any)) => {}
            Some((_, Allowed::Only(allowed))) => {
                let others = package.dependencies.iter().map(|dependency| dependency.name.as_str()).filter(|name| members.contains(name));
                let wrong = others.filter(|name| !allowed.contains(name));
                violations.extend(wrong.map(|name| format!("{} must not depend on {name}", package.name)));
            }
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(packages: &[(&str, &[&str])]) -> String {
        let packages: Vec<_> = packages
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<_> = dependencies.iter().map(|name| serde_json::json!({"name": name, "kind": null})).collect();
                serde_json::json!({"name": name, "dependencies": dependencies})
            })
            .collect();
        serde_json::json!({ "packages": packages }).to_string()
    }

    #[test]
    fn the_intended_direction_passes() {
        let good = metadata(&[
            ("weir-api", &["serde"]),
            ("weir-core", &["weir-api"]),
            ("weir-host", &["weir-core", "weir-api", "wasmtime"]),
            ("weir-operator", &["weir-host"]),
            ("weir-cli", &["weir-operator", "weir-host"]),
            ("weir-xtask", &["weir-api"]),
        ]);
        assert!(check(&good).unwrap().is_empty());
    }

    #[test]
    fn every_wrong_edge_is_found() {
        for (from, to) in [("weir-api", "weir-core"), ("weir-core", "weir-host"), ("weir-host", "weir-cli"), ("weir-xtask", "weir-host")] {
            let bad = metadata(&[(from, &[to]), (to, &[])]);
            assert_eq!(check(&bad).unwrap(), [format!("{from} must not depend on {to}")]);
        }
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        assert!(check(&metadata(&[("weir-new", &[])])).unwrap()[0].contains("weir-new has no place"));
    }
}
