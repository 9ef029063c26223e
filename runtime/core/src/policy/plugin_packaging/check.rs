//! What an answer may say. Names become entries of `KONG_PLUGINS` and folders, targets become files in a container that runs Lua code.

use std::collections::BTreeSet;

use super::{Answer, Input, Placement, Plugin};
use crate::policy::limits;

/// Most plugins of one artifact: each is a volume of the pod.
pub const MAX_PLUGINS: usize = limits::MAX_VOLUMES;
/// Longest name of a plugin, bytes.
pub const MAX_NAME: usize = 120;
/// Longest version of a plugin, bytes.
pub const MAX_VERSION: usize = 64;
/// Longest target of a placement, bytes.
pub const MAX_TARGET: usize = 512;
/// Longest template for `KONG_LUA_PACKAGE_PATH`, bytes.
pub const MAX_LUA_PACKAGE_PATH: usize = 4096;
/// Lowest priority: what fits in 32 bits.
pub const MIN_PRIORITY: i64 = i32::MIN as i64;
/// Highest priority: what fits in 32 bits.
pub const MAX_PRIORITY: i64 = i32::MAX as i64;
/// Files that Kong loads from every plugin.
pub const REQUIRED: [&str; 2] = ["handler.lua", "schema.lua"];
/// Words that mean something else than a plugin in `KONG_PLUGINS`.
pub const RESERVED_NAMES: [&str; 2] = ["bundled", "off"];

/// Whether Kong can have a plugin of this name: 1 to [`MAX_NAME`] letters, digits, `_` and `-`, a letter or digit first, and none of
/// [`RESERVED_NAMES`]. A dot would be a folder to Lua, a comma two entries of `KONG_PLUGINS`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && !RESERVED_NAMES.contains(&name)
}

/// The whole answer.
pub(super) fn answer(input: &Input, answer: &Answer) -> Result<(), String> {
    limits::env(&answer.env)?;
    limits::findings(&answer.findings)?;
    if answer.plugins.is_empty() {
        return Err("no plugin; an artifact without one has to be refused".into());
    }
    limits::count("plugins", answer.plugins.len(), MAX_PLUGINS)?;
    limits::unique("plugin", answer.plugins.iter().map(|p| p.name.as_str()))?;
    // Together, so that an answer cannot multiply the artifact.
    limits::count("placements", answer.plugins.iter().map(|p| p.placements.len()).sum(), input.files.len())?;
    if let Some(template) = &answer.lua_package_path {
        lua_package_path(template)?;
    }
    let sources: BTreeSet<&str> = input.files.iter().map(|f| f.path.as_str()).collect();
    answer.plugins.iter().try_for_each(|p| plugin(&sources, p))
}

fn lua_package_path(template: &str) -> Result<(), String> {
    if template.is_empty() || !limits::printable(template, MAX_LUA_PACKAGE_PATH) {
        return Err(format!("the template of the Lua package path is empty, over {MAX_LUA_PACKAGE_PATH} bytes or has control characters"));
    }
    Ok(())
}

fn plugin(sources: &BTreeSet<&str>, plugin: &Plugin) -> Result<(), String> {
    let name = limits::cut(&plugin.name);
    if !is_name(&plugin.name) {
        return Err(format!(
            "plugin {name:?}: a name is 1 to {MAX_NAME} letters, digits, `_` and `-`, a letter or digit first, and not `bundled` or `off`"
        ));
    }
    if plugin.version.as_ref().is_some_and(|version| version.is_empty() || !limits::printable(version, MAX_VERSION)) {
        return Err(format!("plugin {name:?}: the version is empty, over {MAX_VERSION} bytes or has control characters"));
    }
    if plugin.priority.is_some_and(|priority| !(MIN_PRIORITY..=MAX_PRIORITY).contains(&priority)) {
        return Err(format!("plugin {name:?}: the priority does not fit in 32 bits"));
    }
    if plugin.placements.is_empty() {
        return Err(format!("plugin {name:?}: no placement"));
    }
    plugin.placements.iter().try_for_each(|p| placement(sources, p))?;
    targets(plugin).map_err(|problem| format!("plugin {name:?}: {problem}"))
}

fn placement(sources: &BTreeSet<&str>, placement: &Placement) -> Result<(), String> {
    if !sources.contains(placement.source.as_str()) {
        return Err(format!("placement of {:?}, which the artifact does not have", limits::cut(&placement.source)));
    }
    let normal = placement.target.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    // Kubernetes keeps what begins with two dots for itself in a volume.
    if !normal || placement.target.starts_with("..") || !limits::printable(&placement.target, MAX_TARGET) {
        return Err(format!("target {:?} is not a relative path below the plugin", limits::cut(&placement.target)));
    }
    Ok(())
}

/// All targets of one plugin, as the files of one folder.
fn targets(plugin: &Plugin) -> Result<(), String> {
    limits::unique("target", plugin.placements.iter().map(|p| p.target.as_str()))?;
    let targets: BTreeSet<&str> = plugin.placements.iter().map(|p| p.target.as_str()).collect();
    if let Some(missing) = REQUIRED.into_iter().find(|required| !targets.contains(required)) {
        return Err(format!("nothing is placed at {missing}, which Kong loads from every plugin"));
    }
    match targets.iter().find_map(|target| folders(target).find(|folder| targets.contains(folder))) {
        Some(folder) => Err(format!("target {:?} is a file and a folder at once", limits::cut(folder))),
        None => Ok(()),
    }
}

/// The folders above a path.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}
