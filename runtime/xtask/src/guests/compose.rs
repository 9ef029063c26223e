//! Guests that are several components linked into one, by guest-plugins/tools/compose.
//!
//! A program of the guests' workspace, run natively: what it needs to link components would otherwise be compiled with every xtask.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::list::{Guest, file_name};
use crate::workspace::Workspace;
use crate::{files, process};

/// Links the parts of `guest`, the socket first, all of which are in `finished`.
pub(super) fn compose(workspace: &Workspace, guest: &Guest, finished: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>> {
    let dir = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    let out = dir.path().join("composed");
    let mut cargo = process::cargo(workspace);
    cargo.current_dir(workspace.guest_plugins()).args(["run", "--quiet", "--package", "compose", "--target-dir"]);
    cargo.arg(workspace.guest_plugins().join("target")).arg("--").arg(&out);
    for part in &guest.parts {
        let bytes = finished.get(part).with_context(|| {
            format!("the composed guest {} is made of {part}, which is composed itself; list the parts of {part} instead", guest.name)
        })?;
        let path = dir.path().join(file_name(part));
        files::write_atomic(&path, bytes)?;
        cargo.arg(path);
    }
    process::run(&mut cargo)
        .with_context(|| format!("cannot compose {}; do the imports of its first part fit the exports of the others?", guest.name))?;
    files::read(&out, "guest-plugins/tools/compose said it wrote it")
}
