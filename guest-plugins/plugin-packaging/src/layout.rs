//! Which folders of an artifact are plugins, and which files are theirs.

use std::collections::{BTreeMap, BTreeSet};

use weir_policy_sdk::{
    Refusal,
    plugin_packaging::{File, Input},
    refuse,
};

use crate::{
    about::{self, Incomplete},
    settings::Settings,
};

/// Files that Kong loads from every plugin.
pub(crate) const REQUIRED: [&str; 2] = [HANDLER, "schema.lua"];
/// The file that says version and priority.
pub(crate) const HANDLER: &str = "handler.lua";
/// Most plugins of one artifact; the host's limit.
const MAX_PLUGINS: usize = 32;

/// The folder of one plugin.
#[derive(Debug)]
pub(crate) struct Folder<'a> {
    /// Path in the artifact; empty for its root.
    pub(crate) path: &'a str,
    /// Its files by their path below the folder.
    pub(crate) files: BTreeMap<&'a str, &'a File>,
}

/// An artifact, taken apart.
#[derive(Debug)]
pub(crate) struct Layout<'a> {
    /// In the order of their paths.
    pub(crate) folders: Vec<Folder<'a>>,
    /// Files that the settings ignore.
    pub(crate) ignored: Vec<&'a str>,
    /// Files outside of every plugin.
    pub(crate) stray: Vec<&'a str>,
}

/// Takes an artifact apart. A plugin's folder holds `handler.lua` or `schema.lua` and is not inside another plugin's folder; what is
/// above it (`kong/plugins/`, `usr/local/share/lua/5.1/kong/plugins/`) does not matter.
pub(crate) fn layout<'a>(input: &'a Input, settings: &Settings) -> Layout<'a> {
    let (ignored, kept): (Vec<&File>, Vec<&File>) = input.files.iter().partition(|file| settings.ignores(&file.path));
    let marked: BTreeSet<&str> =
        kept.iter().map(|file| split(&file.path)).filter(|(_, name)| REQUIRED.contains(name)).map(|(path, _)| path).collect();

    let mut folders: BTreeMap<&str, Folder<'_>> = BTreeMap::new();
    let mut stray = Vec::new();
    for file in kept {
        // The outermost one: a handler.lua further down is a module like any other.
        match above(&file.path).find(|(folder, _)| marked.contains(folder)) {
            Some((path, target)) => {
                folders.entry(path).or_insert_with(|| Folder { path, files: BTreeMap::new() }).files.insert(target, file);
            }
            None => stray.push(file.path.as_str()),
        }
    }
    stray.sort_unstable();
    let mut ignored: Vec<&str> = ignored.into_iter().map(|file| file.path.as_str()).collect();
    ignored.sort_unstable();
    Layout { folders: folders.into_values().collect(), ignored, stray }
}

/// Folder and name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The folders above a file, the root first, each with the rest of the path.
fn above(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let inner = path.match_indices('/').filter_map(|(at, _)| Some((path.get(..at)?, path.get(at + 1..)?)));
    std::iter::once(("", path)).chain(inner)
}

impl Layout<'_> {
    /// Every plugin is whole and has only files that it may have.
    ///
    /// # Errors
    /// Says what is missing, what is too much.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), Refusal> {
        if self.folders.is_empty() {
            return Err(about::no_plugin(&self.stray));
        }
        if self.folders.len() > MAX_PLUGINS {
            let message = format!("the artifact has {} plugins, at most {MAX_PLUGINS} are allowed; split it", self.folders.len());
            return Err(refuse("TooManyPlugins", message));
        }
        let missing: Vec<_> = self.folders.iter().filter_map(Folder::missing).collect();
        if !missing.is_empty() {
            return Err(about::missing(&missing));
        }
        self.folders.iter().try_for_each(|folder| folder.check(settings))
    }

    /// All placed files together are within the settings' budget.
    ///
    /// # Errors
    /// Names the largest.
    pub(crate) fn check_size(&self, settings: &Settings) -> Result<(), Refusal> {
        let mut files: Vec<&File> = self.folders.iter().flat_map(|folder| folder.files.values().copied()).collect();
        // Sizes are somebody else's numbers.
        let total = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
        if total <= settings.max_bytes {
            return Ok(());
        }
        files.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
        let largest: Vec<String> = files.iter().take(3).map(|file| format!("{} ({})", about::short(&file.path), file.size)).collect();
        let message = format!(
            "the artifact's {} have {total} bytes, at most {} are allowed; leave out what the plugins do not need, or raise maxBytes in the \
             settings of this policy. The largest: {}",
            about::files(files.len()),
            settings.max_bytes,
            largest.join(", "),
        );
        Err(refuse("TooBig", message))
    }
}

impl<'a> Folder<'a> {
    /// None if it is whole.
    fn missing(&self) -> Option<Incomplete<'a>> {
        let missing: Vec<&str> = REQUIRED.into_iter().filter(|name| !self.files.contains_key(name)).collect();
        (!missing.is_empty()).then(|| Incomplete { path: self.path, missing, found: self.files.keys().copied().collect() })
    }

    fn check(&self, settings: &Settings) -> Result<(), Refusal> {
        let unexpected: Vec<&str> =
            self.files.keys().copied().filter(|target| !REQUIRED.contains(target) && !settings.allows(target)).collect();
        if unexpected.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} has {} that a plugin may not have: {}. Leave them out, or add a pattern to allowedFiles or ignoredFiles in the settings of \
             this policy. Allowed are {}",
            about::folder(self.path),
            about::files(unexpected.len()),
            about::list(unexpected.iter().copied()),
            Self::allowed(settings),
        );
        Err(refuse("UnexpectedFile", message))
    }

    fn allowed(settings: &Settings) -> String {
        // All of the default's, and not many more of others'.
        about::first(10, REQUIRED.into_iter().chain(settings.allowed_files.iter().map(String::as_str)))
    }
}
