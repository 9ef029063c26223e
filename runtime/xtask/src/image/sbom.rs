//! What is in the image, as SPDX 2.3: every crate that is compiled into the binary, and every Debian package that files are from.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use weir_image::{Package, rfc3339};

use super::binary::Binary;
use crate::{process, workspace::Workspace};

const ROOT: &str = "weir-cli";

/// The part of `cargo metadata` that is looked at.
#[derive(Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Crate>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Crate {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    repository: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None for what is compiled in.
    kind: Option<String>,
}

/// The document, as JSON.
pub(super) fn document(workspace: &Workspace, binary: &Binary, debian: &[Package], created: u64) -> Result<Vec<u8>> {
    let mut cargo = process::cargo(workspace);
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &binary.triple]);
    let metadata: Metadata = serde_json::from_str(&process::stdout(&mut cargo)?).context("cannot read the output of `cargo metadata`")?;
    let hash = hex::encode(Sha256::digest(&binary.program.bytes));
    let document = spdx(&metadata, &hash, debian, &rfc3339(created)?)?;
    serde_json::to_vec_pretty(&document).context("cannot write the SBOM")
}

/// Crates that are compiled into the binary.
fn closure(metadata: &Metadata) -> Result<Vec<&Crate>> {
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let root = metadata.packages.iter().find(|package| package.name == ROOT && package.source.is_none());
    let mut pending = vec![root.with_context(|| format!("the workspace has no {ROOT}"))?.id.as_str()];
    let mut seen = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if seen.insert(id) {
            let edges = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
            let compiled_in = edges.iter().filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            pending.extend(compiled_in.map(|edge| edge.pkg.as_str()));
        }
    }
    let mut crates: Vec<&Crate> = metadata.packages.iter().filter(|package| seen.contains(package.id.as_str())).collect();
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

/// Letters, digits, `.` and `-` are all that an identifier may have.
fn id(sort: &str, name: &str, version: &str) -> String {
    let text = format!("{sort}-{name}-{version}");
    format!("SPDXRef-{}", text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect::<String>())
}

fn purl(locator: String) -> Value {
    json!([{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}])
}

/// `hash` is the binary's.
pub(super) fn spdx(metadata: &Metadata, hash: &str, debian: &[Package], created: &str) -> Result<Value> {
    const NONE: &str = "NOASSERTION";
    let mut packages = Vec::new();
    for package in closure(metadata)? {
        let mut entry = json!({
            "SPDXID": id("crate", &package.name, &package.version),
            "name": package.name,
            "versionInfo": package.version,
            "downloadLocation": package.repository.as_ref().filter(|url| url.starts_with("https://")).map_or(NONE, String::as_str),
            "filesAnalyzed": false,
            "licenseConcluded": NONE,
            // An old way to write an alternative that SPDX has another word for.
            "licenseDeclared": package.license.as_ref().map_or_else(|| NONE.to_owned(), |license| license.replace('/', " OR ")),
            "copyrightText": NONE,
            "externalRefs": purl(format!("pkg:cargo/{}@{}", package.name, package.version)),
        });
        if let (Some(entry), true) = (entry.as_object_mut(), package.name == ROOT) {
            entry.insert("checksums".into(), json!([{"algorithm": "SHA256", "checksumValue": hash}]));
            entry.insert("primaryPackagePurpose".into(), "APPLICATION".into());
        }
        packages.push(entry);
    }
    for Package { name, version } in debian {
        let bare = name.split(':').next().unwrap_or_default();
        packages.push(json!({
            "SPDXID": id("deb", bare, version),
            "name": bare,
            "versionInfo": version,
            "downloadLocation": NONE,
            "filesAnalyzed": false,
            "licenseConcluded": NONE,
            "licenseDeclared": NONE,
            "copyrightText": NONE,
            "externalRefs": purl(format!("pkg:deb/debian/{bare}@{}", version.replace('+', "%2B").replace(':', "%3A"))),
        }));
    }
    let root = packages.iter().find(|package| package.get("name").is_some_and(|name| name == ROOT)).and_then(|p| p.get("SPDXID")).cloned();
    let root = root.context("the binary is not in its own list")?;
    let mut relations = vec![json!({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root})];
    let others = packages.iter().filter_map(|package| package.get("SPDXID")).filter(|other| **other != root);
    relations.extend(others.map(|other| json!({"spdxElementId": root, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": other})));
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": concat!("weir-", env!("CARGO_PKG_VERSION")),
        "documentNamespace": format!("https://weir.dev/spdx/weir-{}-{hash}", env!("CARGO_PKG_VERSION")),
        "creationInfo": {"created": created, "creators": [concat!("Tool: weir-xtask-", env!("CARGO_PKG_VERSION"))]},
        "packages": packages,
        "relationships": relations,
    }))
}
