//! `guests`: guest-plugins/ becomes one `.wasm` file per guest in target/guests/, which weir-host embeds and the tests load.
//!
//! A run whose inputs are those of the last one ends in milliseconds; [`stamp`] knows. What is built is said by [`list`], with
//! what by [`toolchain`], how by [`build`].

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{files, ui};

mod build;
mod compose;
pub(crate) mod list;
mod stamp;
mod toolchain;

use stamp::Stamp;

const TASK: &str = "guests";

/// Makes target/guests/ be what the sources say.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let start = Instant::now();
    let list = list::read(workspace)?;
    let out = workspace.guests_out();
    let previous = stamp::load(&out);
    let toolchain = toolchain::choose(workspace, previous.as_ref().map(|stamp| stamp.method))?;
    let inputs = stamp::inputs(workspace, &toolchain)?;
    if let Some(previous) = &previous
        && previous.still_true(&out, &toolchain, &inputs)
    {
        ui::progress(TASK, &format!("up to date ({} guests, {})", list.guests.len(), ui::time(start.elapsed())));
        return Ok(());
    }

    ui::progress(TASK, &format!("building {} guests with {} …", list.guests.len(), toolchain.describe()));
    let finished = build::all(workspace, &toolchain, &list)?;
    let mut outputs = BTreeMap::new();
    for (name, bytes) in &finished {
        let file = list::file_name(name);
        outputs.insert(file.clone(), stamp::digest(bytes));
        // An unchanged guest keeps its time of change, so that weir-host is not compiled again for nothing.
        if std::fs::read(out.join(&file)).ok().as_ref() != Some(bytes) {
            files::write_atomic(&out.join(&file), bytes)?;
        }
    }
    remove_stale(workspace, &outputs)?;
    // Last, so that a run that is cut short is repeated.
    stamp::save(&out, &Stamp { method: toolchain.method, inputs, outputs })?;
    let size: usize = finished.values().map(Vec::len).sum();
    ui::progress(
        TASK,
        &format!("{} guests, {} KiB, in {} ({})", finished.len(), size / 1024, workspace.show(&out), ui::time(start.elapsed())),
    );
    Ok(())
}

/// A guest that left the list must not be found by a test any more.
fn remove_stale(workspace: &Workspace, outputs: &BTreeMap<String, String>) -> Result<()> {
    for path in files::walk(&workspace.guests_out(), &[])? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".wasm") && !outputs.contains_key(&name) {
            ui::progress(TASK, &format!("removing {}, which is no longer in the list", workspace.show(&path)));
            files::remove(&path)?;
        }
    }
    Ok(())
}
