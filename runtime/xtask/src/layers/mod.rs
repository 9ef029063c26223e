//! `layers`: the functional core stays functional.
//!
//! Three checks, each a function from data to violations so that tests can feed it a bad tree: [`manifests`] (who may depend on
//! whom), [`tree`] (what comes in through others), [`source`] (what the code of the pure crates reaches for).

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{files, process, ui};

mod lexer;
mod manifests;
mod source;
mod tree;

const TASK: &str = "layers";

/// Fails with every violation at once.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut violations = manifests::check(&metadata(workspace)?)?;
    for package in tree::PURE {
        violations.extend(tree::check(&dependency_tree(workspace, package)?)?);
    }
    let mut read = 0;
    for layer in source::PURE {
        for path in files::walk(&workspace.path(layer.dir), &["tests"])? {
            if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let inside = path.strip_prefix(workspace.path(layer.dir)).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                let text = files::read_text(&path, "check its permissions")?;
                violations.extend(source::check(&layer, &inside, &text));
                read += 1;
            }
        }
    }
    if violations.is_empty() {
        ui::progress(TASK, &format!("dependencies of {} and {read} source files are pure", tree::PURE.join(", ")));
        return Ok(());
    }
    for violation in &violations {
        ui::progress(TASK, violation);
    }
    bail!(
        "{} violations of the layers, listed above; move the code to runtime/host or runtime/operator, or pass the value in",
        violations.len()
    )
}

fn metadata(workspace: &Workspace) -> Result<String> {
    process::stdout(process::cargo(workspace).args(["metadata", "--no-deps", "--format-version", "1"]))
}

/// `cargo tree`, not the resolve of `cargo metadata`: the latter joins the features of all members, so a client feature that only
/// the operator asks for would show below `api` too.
fn dependency_tree(workspace: &Workspace, package: &str) -> Result<String> {
    process::stdout(process::cargo(workspace).args([
        "tree",
        "--package",
        package,
        "--edges",
        "normal",
        "--prefix",
        "depth",
        "--format",
        " {p}",
    ]))
}
