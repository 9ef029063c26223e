//! One YAML file that says whose signatures artifacts need, policies and plugins alike:
//!
//! ```yaml
//! apiVersion: weir.dev/v1alpha1
//! kind: Verification
//! entries:
//!   - prefix: ghcr.io/acme          # the longest prefix holds, and it alone; left out: whatever no other entry is for
//!     anyOf:                        # one of these must have signed
//!       - publicKey: {file: cosign.pub}
//!       - keyless: {issuer: https://token.actions.githubusercontent.com, subject: https://github.com/acme/…}
//!     allOf:                        # all of these must have signed
//!       - publicKey: {pem: "-----BEGIN PUBLIC KEY-----…"}
//!   - prefix: ghcr.io/acme/scratch
//!     unsigned: true                # nothing is asked of these
//! ```
//!
//! Paths are relative to the file. The prefix is one of what is asked for, not of a mirror that stands for it.

mod check;
mod document;

use std::path::{Path, PathBuf};

use weir_core::hash;

pub use super::yaml_file::{FileError, Problem};
use super::{Reference, Requirement, Signer, reference::below, yaml_file};

/// A file that was read and checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    entries: Vec<Entry>,
    /// Further files that were read.
    files: Vec<PathBuf>,
}

/// Whose signatures artifacts of some repositories need.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// `registry` or `registry/repository`; empty: everything.
    prefix: String,
    /// None: nothing is asked.
    requirement: Option<Requirement>,
}

/// Reads the file at `path`, and the keys that it names. Blocks on the file system.
///
/// # Errors
/// Names the file, the field, and what to write instead.
pub fn read(path: &Path) -> Result<File, FileError> {
    yaml_file::read(path, check::file)
}

impl File {
    /// Whose signatures the artifact of a reference needs; none where it needs none.
    #[must_use]
    pub fn requirement(&self, reference: &Reference) -> Option<&Requirement> {
        let place = reference.place();
        let of = |entry: &&Entry| entry.prefix.is_empty() || below(&place, &entry.prefix).is_some();
        self.entries.iter().filter(of).max_by_key(|entry| entry.prefix.len())?.requirement.as_ref()
    }

    /// Digest of that, for who has to notice that it is another one: `sha256:…`; none where nothing is needed.
    #[must_use]
    pub fn digest(&self, reference: &Reference) -> Option<String> {
        let Requirement { any_of, all_of } = self.requirement(reference)?;
        let words = |signers: &[Signer]| -> Vec<[String; 2]> {
            let word = |signer: &Signer| match signer {
                Signer::Key { pem, name: _ } => ["key".to_owned(), hash::digest(pem)],
                Signer::Identity { issuer, subject } => [issuer.clone(), subject.clone()],
            };
            signers.iter().map(word).collect()
        };
        Some(hash::digest_json(&(words(any_of), words(all_of))))
    }

    /// Whether somebody is asked for who signs with a certificate, so that a [`TrustRoot`](super::TrustRoot) is needed.
    #[must_use]
    pub fn wants_identities(&self) -> bool {
        let signers = self.entries.iter().filter_map(|entry| entry.requirement.as_ref());
        let mut signers = signers.flat_map(|requirement| requirement.any_of.iter().chain(&requirement.all_of));
        signers.any(|signer| matches!(signer, Signer::Identity { .. }))
    }

    /// Files that were read beside the file itself: those of keys.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}
