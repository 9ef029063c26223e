//! Files of settings: read at the start, and again when one of them changes. What cannot be read later changes nothing.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use weir_core::hash;

/// More than any of these files may have, bytes.
const MOST: u64 = (1 << 20) + 1;

/// What was made of files, and the files.
pub(super) type Loaded<T> = Result<(T, Vec<PathBuf>), String>;

/// One part of the settings, and where it comes from.
pub(super) struct Part<T> {
    pub(super) value: T,
    files: Vec<PathBuf>,
    print: String,
    /// Why the files that are there now are of no use; what was read before counts.
    pub(super) problem: Option<String>,
}

/// What became of a look at the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// They are as they were, or say the same.
    Same,
    /// They say something else, which counts from now on.
    Changed,
    /// They cannot be used, in a way that was not known.
    Broken,
    /// They can be used again, and say what they said.
    Mended,
}

impl<T: PartialEq> Part<T> {
    /// The first look.
    pub(super) fn new(load: impl FnOnce() -> Loaded<T>) -> Result<Self, String> {
        // Files that change while they are read are read again with the next look.
        load().map(|(value, files)| Self { value, files, print: String::new(), problem: None })
    }

    /// Looks at the files again.
    pub(super) fn look(&mut self, load: impl FnOnce() -> Loaded<T>) -> Looked {
        let print = print(&self.files);
        // A file that a broken one names is not known.
        if self.problem.is_none() && print == self.print {
            return Looked::Same;
        }
        self.print = print;
        let broken = self.problem.take();
        match load() {
            Ok((value, files)) => {
                self.files = files;
                let same = self.value == value;
                self.value = value;
                match (same, broken) {
                    (false, _) => Looked::Changed,
                    (true, Some(_)) => Looked::Mended,
                    (true, None) => Looked::Same,
                }
            }
            Err(problem) => {
                let is_known = broken.as_ref() == Some(&problem);
                self.problem = Some(problem);
                if is_known { Looked::Same } else { Looked::Broken }
            }
        }
    }
}

/// What is in the files. Times would say less: mounted files change by a link that moves.
fn print(files: &[PathBuf]) -> String {
    let content = |path: &Path| -> Option<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        Some(hash::digest(&bytes))
    };
    hash::digest_json(&files.iter().map(|path| content(path)).collect::<Vec<_>>())
}
