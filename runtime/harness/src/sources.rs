//! Reading manifests: files, directories, standard input. Sizes are bounded before anything is read.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use weir_api::manifest::Source;

use crate::exit::Failure;

/// Largest manifest file, bytes.
const MAX_FILE: u64 = 16 << 20;
/// Most files of one directory tree.
const MAX_FILES: usize = 10_000;
/// Deepest folder below a directory that is named.
const MAX_DEPTH: usize = 32;

/// Reads everything that is named, in order; directories sorted by path.
///
/// # Errors
/// What cannot be read, or is too large or too much ([`Exit::Usage`](crate::exit::Exit::Usage)).
pub fn read(names: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for name in names {
        if name.as_os_str() == "-" {
            sources.push(Source { name: "<stdin>".into(), text: bounded("<stdin>", std::io::stdin().lock())? });
        } else if name.is_dir() {
            let mut files = Vec::new();
            walk(name, 0, &mut files)?;
            files.sort();
            if files.is_empty() {
                return Err(Failure::usage(format!("{}: no .yaml, .yml or .json file below this directory", name.display())));
            }
            for file in files {
                sources.push(file_source(&file)?);
            }
        } else {
            sources.push(file_source(name)?);
        }
    }
    Ok(sources)
}

fn walk(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("{}: {error}", dir.display()));
    if depth > MAX_DEPTH {
        return Err(Failure::usage(format!("{}: more than {MAX_DEPTH} folders deep", dir.display())));
    }
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        // Links to directories are not followed: a circle would never end.
        if path.is_dir() && !path.is_symlink() {
            walk(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json") {
            files.push(path);
        }
        if files.len() > MAX_FILES {
            return Err(Failure::usage(format!("{}: more than {MAX_FILES} manifest files", dir.display())));
        }
    }
    Ok(())
}

fn file_source(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    Ok(Source { text: bounded(&name, file)?, name })
}

/// Text of at most [`MAX_FILE`] bytes.
fn bounded(name: &str, reader: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Failure::usage(format!("{name}: over {} MiB", MAX_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name}: is not UTF-8 text")))
}
