//! Which files are suites.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

/// Most files that are looked at.
const MAX_FILES: usize = 100_000;
/// Deepest folder below one that is named.
const MAX_DEPTH: usize = 32;
/// Folders that hold what was built or fetched.
const SKIPPED: [&str; 3] = ["target", "node_modules", "snapshots"];
/// Largest suite, bytes.
pub(super) const MAX_SUITE: u64 = 4 << 20;

/// Suites that paths name: a file, a folder, or `FOLDER/...`; folders are searched to the bottom. In order of their paths, each once.
///
/// A file that is named, or is called `case.yaml` or `*.test.yaml`, has to be a suite; other files are suites if they say so.
///
/// # Errors
/// What is not there, cannot be read, or is no suite but has the name of one.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let text = path.to_string_lossy();
        let folder = match text.strip_suffix("...") {
            Some("" | "./") => PathBuf::from("."),
            Some(rest) => PathBuf::from(rest),
            None => path.clone(),
        };
        if folder.is_dir() {
            walk(&folder, 0, &mut found)?;
        } else if folder == *path {
            if !is_suite(path)? {
                return Err(Failure::usage(format!("{}: is no suite: it has no `kind: PolicyTest`", path.display())));
            }
            found.push(path.clone());
        } else {
            return Err(Failure::usage(format!("{}: is no folder", folder.display())));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("{}: {error}", folder.display()));
    if depth > MAX_DEPTH {
        return Err(Failure::usage(format!("{}: more than {MAX_DEPTH} folders deep", folder.display())));
    }
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Links to folders are not followed: a circle would never end.
        if path.is_dir() {
            if !path.is_symlink() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                walk(&path, depth + 1, found)?;
            }
            continue;
        }
        if ![".yaml", ".yml"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let named = ["case.yaml", "case.yml"].contains(&name.as_str()) || [".test.yaml", ".test.yml"].iter().any(|end| name.ends_with(end));
        if is_suite(&path)? {
            found.push(path);
        } else if named {
            return Err(Failure::usage(format!("{}: has the name of a suite and no `kind: PolicyTest`", path.display())));
        }
        if found.len() > MAX_FILES {
            return Err(Failure::usage(format!("{}: more than {MAX_FILES} suites", folder.display())));
        }
    }
    Ok(())
}

/// Whether a line of its own says so, outside of everything else.
fn is_suite(path: &Path) -> Result<bool, Failure> {
    let text = bounded(path)?;
    Ok(text.lines().any(|line| line.trim_end() == "kind: PolicyTest"))
}

/// Text of a suite; bytes that are no text are none of its words.
pub(super) fn bounded(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(MAX_SUITE + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    // A large manifest beside suites is no mistake.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn folders_are_searched_and_built_things_left_out() {
        let suite = "kind: PolicyTest\n";
        let dir = tree(&[
            ("a/b.yaml", suite),
            ("a/c.test.yaml", suite),
            ("a/manifest.yaml", "kind: DataPlane\n"),
            ("target/x.yaml", suite),
            (".git/x.yaml", suite),
            ("z/case.yaml", suite),
        ]);
        let names = |paths: &[PathBuf]| -> Vec<String> {
            let found = find(paths).unwrap();
            found.iter().map(|p| p.strip_prefix(dir.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(names(&[dir.path().join("...")]), ["a/b.yaml", "a/c.test.yaml", "z/case.yaml"]);
        assert_eq!(names(&[dir.path().to_owned(), dir.path().join("a/b.yaml")]).len(), 3, "each once");
        let error = find(&[dir.path().join("a/manifest.yaml")]).unwrap_err();
        assert!(error.message.contains("is no suite"), "{error}");
        assert!(find(&[dir.path().join("missing.yaml")]).is_err());
    }

    #[test]
    fn a_file_with_the_name_of_a_suite_is_not_passed_over() {
        let dir = tree(&[("a.test.yaml", "kind: PolicyTests\n")]);
        assert!(find(&[dir.path().to_owned()]).unwrap_err().message.contains("has the name of a suite"));
    }
}
