//! Published versions of the contract in `wit/` never change: components that were built against them are in registries.
//!
//! `wit/frozen/VERSION` is the text of a published version, and its digest stands here. What is in `wit/` under a published version has to be
//! that text; the next version is another `package weir:policy@…` line.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;
use crate::{files, ui};

const TASK: &str = "contract";
/// Published versions, each with the digest of its files. A line is added when a version is published, and none is ever changed.
const PUBLISHED: [(&str, &str); 1] = [("0.1.0", "cddefa86ca7e6598f338f7d39623681db334ee64c24c0c413798c0913be7877d")];
const PACKAGE: &str = "package weir:policy@";

/// Name of a file to its text.
type Texts = BTreeMap<String, String>;

/// Fails about every published version that is not what it was.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let current = texts(workspace, "wit")?;
    let mut frozen = BTreeMap::new();
    for (version, _) in PUBLISHED {
        frozen.insert(version, texts(workspace, &format!("wit/frozen/{version}"))?);
    }
    let problems = check(&current, &frozen, &PUBLISHED);
    if problems.is_empty() {
        ui::progress(TASK, &format!("{} published version(s) of weir:policy are as they were", PUBLISHED.len()));
        return Ok(());
    }
    for problem in &problems {
        ui::progress(TASK, problem);
    }
    bail!("a published version of the contract was changed, see above; undo that, and make a new version for what has to change")
}

/// The contract in one directory, without those below it.
fn texts(workspace: &Workspace, dir: &str) -> Result<Texts> {
    let root = workspace.path(dir);
    let mut texts = Texts::new();
    for path in files::walk(&root, &["frozen"])? {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        if name.ends_with(".wit") {
            texts.insert(name, files::read_text(&path, "it is a part of the contract; check its permissions")?);
        }
    }
    Ok(texts)
}

fn digest(texts: &Texts) -> String {
    let mut all = Sha256::new();
    for (name, text) in texts {
        all.update(format!("{name}\n{}\n", hex::encode(Sha256::digest(text.as_bytes()))));
    }
    hex::encode(all.finalize())
}

/// The version that a file says it is of.
fn version(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix(PACKAGE)?.strip_suffix(';'))
}

fn check(current: &Texts, frozen: &BTreeMap<&str, Texts>, published: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (published, expected) in published {
        let found = frozen.get(published).map(digest).unwrap_or_default();
        if found != *expected {
            problems.push(format!("wit/frozen/{published} has digest {found} instead of {expected}"));
        }
    }
    for (name, text) in current {
        let Some(version) = version(text) else {
            problems.push(format!("wit/{name} has no line `{PACKAGE}VERSION;`"));
            continue;
        };
        if let Some(frozen) = frozen.get(version).filter(|frozen| frozen.get(name) != Some(text)) {
            let what = if frozen.contains_key(name) { "differs from" } else { "is not in" };
            problems.push(format!("wit/{name} says that it is of version {version} and {what} wit/frozen/{version}"));
        }
    }
    let versions: std::collections::BTreeSet<&str> = current.values().filter_map(|text| version(text)).collect();
    for (version, frozen) in frozen.iter().filter(|(version, _)| versions.contains(*version)) {
        let gone = frozen.keys().filter(|name| !current.contains_key(*name));
        problems.extend(gone.map(|name| format!("wit/{name} of version {version} is gone")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Texts {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    const A: &str = "package weir:policy@0.1.0;\ninterface a {}\n";

    fn problems(current: &[(&str, &str)], frozen: &[(&str, &str)]) -> Vec<String> {
        let expected = digest(&texts(&[("a.wit", A)]));
        check(&texts(current), &BTreeMap::from([("0.1.0", texts(frozen))]), &[("0.1.0", &expected)])
    }

    #[test]
    fn what_is_published_is_what_it_was() {
        assert_eq!(problems(&[("a.wit", A)], &[("a.wit", A)]), [] as [&str; 0]);
        // The next version may say what it likes.
        let next = A.replace("0.1.0", "0.1.1").replace("interface a", "interface b");
        assert_eq!(problems(&[("a.wit", &next), ("b.wit", &next)], &[("a.wit", A)]), [] as [&str; 0]);
    }

    #[test]
    fn every_change_of_a_published_version_is_told() {
        let changed = A.replace("interface a", "interface b");
        for (current, frozen, word) in [
            (vec![("a.wit", changed.as_str())], vec![("a.wit", A)], "differs from wit/frozen/0.1.0"),
            (vec![("a.wit", A), ("b.wit", A)], vec![("a.wit", A)], "wit/b.wit says that it is of version 0.1.0 and is not in"),
            (vec![("a.wit", A)], vec![("a.wit", changed.as_str())], "wit/frozen/0.1.0 has digest"),
            (vec![("b.wit", A)], vec![("a.wit", A)], "wit/a.wit of version 0.1.0 is gone"),
            (vec![("a.wit", "interface a {}")], vec![("a.wit", A)], "wit/a.wit has no line"),
        ] {
            let told = problems(&current, &frozen);
            assert!(told.iter().any(|problem| problem.contains(word)), "{word}: {told:?}");
        }
    }
}
