//! What the last build of the guests was made from, so that the next one can be left out.
//!
//! Content is hashed, not times: a checkout or a branch switch touches every file and changes few. The stamp also carries the
//! digests of what was written, so that a file that somebody replaced is built again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::toolchain::{Method, Toolchain};
use crate::files;
use crate::workspace::Workspace;

const FILE: &str = "stamp.json";

/// Raise it when the way from module to component changes; no input file would show it.
const FORMAT: &str = "1";

/// A finished build.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// How it was built; a way that failed once is not tried again.
    pub(super) method: Method,
    /// Hash of everything that was read.
    pub(super) inputs: String,
    /// File name to digest of everything that was written.
    pub(super) outputs: BTreeMap<String, String>,
}

impl Stamp {
    /// Whether a build now would write the files that are there.
    pub(super) fn still_true(&self, out: &Path, toolchain: &Toolchain, inputs: &str) -> bool {
        self.method == toolchain.method
            && self.inputs == inputs
            && self.outputs.iter().all(|(file, expected)| std::fs::read(out.join(file)).is_ok_and(|bytes| digest(&bytes) == *expected))
    }
}

/// The stamp of the last build. Absent or unreadable is the same: build.
pub(super) fn load(out: &Path) -> Option<Stamp> {
    serde_json::from_slice(&std::fs::read(out.join(FILE)).ok()?).ok()
}

/// Leaves the stamp of this build.
pub(super) fn save(out: &Path, stamp: &Stamp) -> Result<()> {
    let text = serde_json::to_vec_pretty(stamp).context("cannot write the stamp of the guests as JSON")?;
    files::write_atomic(&out.join(FILE), &text)
}

/// Hash of everything that a build would read.
pub(super) fn inputs(workspace: &Workspace, toolchain: &Toolchain) -> Result<String> {
    let mut sources = files::walk(&workspace.guest_plugins(), &["target", ".git"])?;
    sources.extend(files::walk(&workspace.path("wit"), &["frozen"])?);
    hash(workspace.root(), &sources, &[FORMAT, toolchain.method.name(), &toolchain.version])
}

/// Digest of one file's content.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn hash(root: &Path, sources: &[PathBuf], facts: &[&str]) -> Result<String> {
    let mut hasher = Sha256::new();
    for fact in facts {
        field(&mut hasher, fact.as_bytes());
    }
    for path in sources {
        // Relative, so that a moved checkout is the same input.
        let name = path.strip_prefix(root).unwrap_or(path);
        field(&mut hasher, name.as_os_str().as_encoded_bytes());
        field(&mut hasher, &files::read(path, "it is a source of the guests; check its permissions")?);
    }
    Ok(hex::encode(hasher.finalize()))
}

/// The length first: no two lists of fields run together to the same bytes.
fn field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = files::walk(dir.path(), &["target"]).unwrap();
        (dir, found)
    }

    fn hash_of(files: &[(&str, &str)], facts: &[&str]) -> String {
        let (dir, found) = tree(files);
        hash(dir.path(), &found, facts).unwrap()
    }

    #[test]
    fn the_same_content_elsewhere_is_the_same_input() {
        let files = [("a/lib.rs", "x"), ("b/lib.rs", "y")];
        assert_eq!(hash_of(&files, &["v1"]), hash_of(&files, &["v1"]));
    }

    #[test]
    fn content_names_and_toolchain_count() {
        let base = hash_of(&[("a.rs", "x"), ("b.rs", "y")], &["v1"]);
        assert_ne!(base, hash_of(&[("a.rs", "x"), ("b.rs", "z")], &["v1"]));
        assert_ne!(base, hash_of(&[("a.rs", "x"), ("c.rs", "y")], &["v1"]));
        assert_ne!(base, hash_of(&[("a.rs", "x"), ("b.rs", "y")], &["v2"]));
        assert_ne!(base, hash_of(&[("a.rs", "x")], &["v1"]));
    }

    #[test]
    fn moving_a_byte_between_files_counts() {
        assert_ne!(hash_of(&[("a", "xy"), ("b", "z")], &[]), hash_of(&[("a", "x"), ("b", "yz")], &[]));
    }

    #[test]
    fn what_the_build_itself_writes_does_not_count() {
        assert_eq!(hash_of(&[("a.rs", "x"), ("target/o", "1")], &[]), hash_of(&[("a.rs", "x"), ("target/o", "2")], &[]));
    }

    #[test]
    fn a_replaced_or_missing_output_is_noticed() {
        let out = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::new(Method::Rustup, "rustc 1".to_owned());
        let stamp =
            Stamp { method: Method::Rustup, inputs: "i".to_owned(), outputs: BTreeMap::from([("g.wasm".to_owned(), digest(b"g"))]) };
        assert!(!stamp.still_true(out.path(), &toolchain, "i"));
        std::fs::write(out.path().join("g.wasm"), "g").unwrap();
        assert!(stamp.still_true(out.path(), &toolchain, "i"));
        assert!(!stamp.still_true(out.path(), &toolchain, "j"));
        std::fs::write(out.path().join("g.wasm"), "h").unwrap();
        assert!(!stamp.still_true(out.path(), &toolchain, "i"));
    }

    #[test]
    fn a_stamp_is_read_back_and_a_broken_one_means_build() {
        let out = tempfile::tempdir().unwrap();
        save(out.path(), &Stamp { method: Method::Debian, inputs: "i".to_owned(), outputs: BTreeMap::new() }).unwrap();
        assert_eq!(load(out.path()).unwrap().method, Method::Debian);
        std::fs::write(out.path().join(FILE), "{").unwrap();
        assert!(load(out.path()).is_none());
    }
}
