//! The default policy of slot plugin-packaging.
//!
//! A plugin is a folder of the artifact that holds `handler.lua` or `schema.lua` and is not inside another such folder; it needs
//! both. So an artifact is one plugin (in its root, or in a folder) or several, and what is above their folders does not matter.
//! Everything in the folder is kept as it lies there: further modules, `migrations/`, `daos.lua`, `api.lua`, nested folders.
//!
//! | what | where it comes from |
//! |---|---|
//! | a plugin's name | annotation `weir.dev/plugin-name` of the installation, else of the artifact, else the folder, else the installation's name |
//! | version, priority | constants `VERSION` and `PRIORITY` in `handler.lua`, where they can be read without running it |
//! | a file in a plugin's folder | placed if the settings allow it, left out if they ignore it, else the artifact is refused |
//! | a file outside | left out with a warning: `require` does not find it |
//!
//! Refusals: `NoPlugin`, `MissingFiles`, `TooManyPlugins`, `UnexpectedFile`, `InvalidName`, `NameNotAllowed`, `AmbiguousName`,
//! `DuplicatePlugin`, `BundledName`, `TooBig`. Findings: `Ignored`, `StrayFile`, `ShadowsBundledPlugin`, `HandlerUnread`, `NotStated`.

mod about;
mod glob;
mod handler;
mod layout;
mod lua;
mod name;
mod settings;
#[cfg(test)]
mod tests;

use weir_policy_sdk::{
    Finding, PluginPackaging, Policy, Refusal, Severity,
    plugin_packaging::{Answer, Input, Plugin, answer, placement, plugin},
};

use layout::{Folder, HANDLER, layout};
pub use name::NAME_ANNOTATION;
pub use settings::{NamePrefix, SCHEMA, Settings};

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct DefaultPolicy;

impl Policy for DefaultPolicy {
    type Settings = Settings;

    fn schema() -> &'static str {
        SCHEMA
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        settings.validate()
    }
}

impl PluginPackaging for DefaultPolicy {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        evaluate(&input, &settings)
    }
}

/// The policy as a function, for policies that change its answer.
///
/// # Errors
/// Refuses artifacts that hold no whole plugin, or something that the settings do not allow.
pub fn evaluate(input: &Input, settings: &Settings) -> Result<Answer, Refusal> {
    let layout = layout(input, settings);
    layout.check(settings)?;
    layout.check_size(settings)?;
    let named = name::all(input, &layout.folders, settings)?;
    let mut findings = name::bundled(input, named.keys().copied(), settings)?;

    let mut unread = Vec::new();
    let mut unstated = Vec::new();
    let mut plugins = Vec::new();
    for (name, folder) in &named {
        let packaged = package(name, folder);
        if text(folder).is_none() {
            unread.push(*name);
        } else if packaged.version.is_none() || packaged.priority.is_none() {
            unstated.push(*name);
        }
        plugins.push(packaged);
    }
    findings.extend(left_out(&layout.ignored, &layout.stray));
    findings.extend(about::several(Severity::Info, "HandlerUnread", &unread, |names| {
        format!("version and priority are not known of {names}: handler.lua is too large or is no UTF-8 text")
    }));
    findings.extend(about::several(Severity::Info, "NotStated", &unstated, |names| {
        format!("handler.lua of {names} does not state VERSION and PRIORITY as constants; Kong loads no plugin that does not set both")
    }));
    Ok(Answer { findings, ..answer(plugins) })
}

fn left_out(ignored: &[&str], stray: &[&str]) -> impl Iterator<Item = Finding> {
    let ignored = about::several(Severity::Info, "Ignored", ignored, |names| {
        format!("{} left out, as ignoredFiles in the settings of this policy says: {names}", about::files(ignored.len()))
    });
    let stray = about::several(Severity::Warning, "StrayFile", stray, |names| {
        let count = about::files(stray.len());
        format!(
            "{count} outside of the plugins' folders left out, where Kong would not find them: {names}. Move what a plugin needs into its folder"
        )
    });
    ignored.into_iter().chain(stray)
}

/// A plugin of a folder's files, as they lie there.
fn package(name: &str, folder: &Folder<'_>) -> Plugin {
    let facts = text(folder).map(handler::read).unwrap_or_default();
    let placements = folder.files.iter().map(|(target, file)| placement(&file.path, *target)).collect();
    Plugin { version: facts.version, priority: facts.priority, ..plugin(name, placements) }
}

fn text<'a>(folder: &Folder<'a>) -> Option<&'a str> {
    folder.files.get(HANDLER).and_then(|file| file.text.as_deref())
}
