//! From sources to finished guests, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use wit_component::ComponentEncoder;

use super::list::{Guest, Kind, List};
use super::toolchain::{TARGET, Toolchain};
use super::{TASK, compose};
use crate::workspace::Workspace;
use crate::{files, process, ui};

/// Every guest of the list by name.
pub(super) fn all(workspace: &Workspace, toolchain: &Toolchain, list: &List) -> Result<BTreeMap<String, Vec<u8>>> {
    compile(workspace, toolchain, list)?;
    let mut finished = BTreeMap::new();
    for guest in &list.guests {
        match guest.kind {
            Kind::Component => {
                let component = componentize(&guest.name, &module(workspace, guest)?)?;
                finished.insert(guest.name.clone(), component);
            }
            Kind::CoreModule => {
                finished.insert(guest.name.clone(), module(workspace, guest)?);
            }
            // Made of the others: after them.
            Kind::Composed => {}
        }
    }
    for guest in list.guests.iter().filter(|guest| guest.kind == Kind::Composed) {
        ui::progress(TASK, &format!("composing {} from {}", guest.name, guest.parts.join(", ")));
        let composed = compose::compose(workspace, guest, &finished)?;
        finished.insert(guest.name.clone(), composed);
    }
    Ok(finished)
}

/// One cargo for all packages: they share the SDK and most dependencies.
fn compile(workspace: &Workspace, toolchain: &Toolchain, list: &List) -> Result<()> {
    let packages: BTreeSet<&str> = list.guests.iter().filter_map(|guest| guest.package.as_deref()).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let mut cargo = toolchain.cargo_build(workspace);
    cargo.arg("--quiet").arg("--target-dir").arg(target_dir(workspace));
    for package in packages {
        cargo.args(["--package", package]);
    }
    process::run(&mut cargo).context("the guests do not compile; correct guest-plugins/ and try again")
}

/// The guests' own target directory, also when `CARGO_TARGET_DIR` moves the main one.
fn target_dir(workspace: &Workspace) -> PathBuf {
    workspace.guest_plugins().join("target")
}

fn module(workspace: &Workspace, guest: &Guest) -> Result<Vec<u8>> {
    let package = guest
        .package
        .as_deref()
        .with_context(|| format!("the guest {} has no package; add one to guest-plugins/guests.toml", guest.name))?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    let path = target_dir(workspace).join(TARGET).join("release").join(file);
    files::read(&path, &format!("the package {package} must be a library with crate-type = [\"cdylib\"] and the default library name"))
}

fn componentize(name: &str, module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode()).with_context(|| {
        format!("the guest {name} does not become a component; does it export what its world in wit/ says, and import nothing else?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_named() {
        let error = format!("{:#}", componentize("odd", b"not wasm").unwrap_err());
        assert!(error.contains("the guest odd"), "{error}");
    }
}
