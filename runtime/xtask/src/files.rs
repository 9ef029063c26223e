//! Writing files so that nobody ever reads half of one.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file next to its final place and renames it. Creates the directory.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().context("a file to write has no directory")?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}; check its permissions", dir.display()))?;
    let mut file =
        tempfile::NamedTempFile::new_in(dir).with_context(|| format!("cannot write below {}; check its permissions", dir.display()))?;
    file.write_all(bytes).with_context(|| format!("cannot write {}; is the disk full?", path.display()))?;
    open_to_readers(file.as_file())?;
    file.persist(path).with_context(|| format!("cannot write {}; check its permissions", path.display()))?;
    Ok(())
}

/// A temporary file is private to its user; what a build leaves behind is not.
#[cfg(unix)]
fn open_to_readers(file: &std::fs::File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644)).context("cannot set the mode of a file just written")
}

#[cfg(not(unix))]
fn open_to_readers(_file: &std::fs::File) -> Result<()> {
    Ok(())
}

/// Reads a file, or says which one is missing and what makes it.
pub(crate) fn read(path: &Path, hint: &str) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}; {hint}", path.display()))
}

/// Reads a UTF-8 file, or says which one is missing and what makes it.
pub(crate) fn read_text(path: &Path, hint: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}; {hint}", path.display()))
}

/// Every file below `dir` in a stable order; directories named in `skip` are not entered. A missing `dir` has no files.
pub(crate) fn walk(dir: &Path, skip: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        if !dir.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
            let kind = entry.file_type().with_context(|| format!("cannot look at {}", entry.path().display()))?;
            if !kind.is_dir() {
                found.push(entry.path());
            } else if !skip.iter().any(|name| entry.file_name() == *name) {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a file; one that is already gone is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}; check its permissions", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
