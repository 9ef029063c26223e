//! Words about an artifact. Its names are somebody else's text: every message is short, whatever they are.

use weir_policy_sdk::{Finding, Refusal, Severity, cut, finding, refuse};

/// Most things that a message names.
const MAX_NAMED: usize = 5;
/// Longest name in a message, bytes.
const MAX_NAME: usize = 100;

/// One name.
pub(crate) fn short(name: &str) -> String {
    cut(name, MAX_NAME)
}

/// A folder; the artifact itself has no name.
pub(crate) fn folder(path: &str) -> String {
    if path.is_empty() { "the artifact".to_owned() } else { format!("folder {}", short(path)) }
}

/// `A, B and 3 more`.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    first(MAX_NAMED, names)
}

/// [`list`] of another length.
pub(crate) fn first<'a>(most: usize, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let named: Vec<String> = names.by_ref().take(most).map(short).collect();
    let named = named.join(", ");
    match names.count() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// `1 file` or `3 files`.
pub(crate) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// One finding about several files or plugins; none about none.
pub(crate) fn several(severity: Severity, code: &str, names: &[&str], message: impl FnOnce(&str) -> String) -> Option<Finding> {
    (!names.is_empty()).then(|| finding(severity, code, "", message(&list(names.iter().copied()))))
}

/// No folder is one of a plugin.
pub(crate) fn no_plugin(paths: &[&str]) -> Refusal {
    let found = if paths.is_empty() {
        "it has no files that count".to_owned()
    } else {
        format!("it has {}: {}", files(paths.len()), list(paths.iter().copied()))
    };
    refuse(
        "NoPlugin",
        format!("the artifact has no plugin; {found}. Put handler.lua and schema.lua into its root or into one folder per plugin"),
    )
}

/// A folder that is no whole plugin.
pub(crate) struct Incomplete<'a> {
    /// The folder.
    pub(crate) path: &'a str,
    /// Required files that it lacks.
    pub(crate) missing: Vec<&'a str>,
    /// What it has.
    pub(crate) found: Vec<&'a str>,
}

/// Some folders are no whole plugins.
pub(crate) fn missing(folders: &[Incomplete<'_>]) -> Refusal {
    const MOST: usize = 3;
    let one = |it: &Incomplete<'_>| {
        format!("{} has no {} but {}", folder(it.path), it.missing.join(" and no "), first(2, it.found.iter().copied()))
    };
    let mut each: Vec<String> = folders.iter().take(MOST).map(one).collect();
    if folders.len() > MOST {
        each.push(format!("{} more like that", folders.len() - MOST));
    }
    let message = format!("a plugin needs handler.lua and schema.lua in one folder; add what is missing: {}", each.join("; "));
    refuse("MissingFiles", message)
}
