//! Why something is not kept.

use std::{io, path::PathBuf};

use crate::{disk, oci::text};

/// Why something is not kept on disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory.
    #[error("store of components: {0}")]
    Directory(#[from] disk::Error),
    /// It cannot name a file.
    #[error("\"{}\" cannot name a stored file; digests of layers are sha256: and 64 lower-case hexadecimal digits", text::name(.0))]
    Digest(String),
    /// The name and the bytes differ.
    #[error("the component to store has digest {found} instead of {expected}")]
    Content {
        /// Digest named.
        expected: String,
        /// Digest of the bytes.
        found: String,
    },
    /// Larger than everything together may be.
    #[error("component {digest} has {}, the whole store may have {}; give the store more", text::bytes(*.found), text::bytes(*.most))]
    TooLarge {
        /// The component.
        digest: String,
        /// Its bytes.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// What is in use takes all the room.
    #[error(
        "component {digest} has {}, and components in use take {} of {}; give the store more",
        text::bytes(*.size),
        text::bytes(*.kept),
        text::bytes(*.most)
    )]
    Full {
        /// The component.
        digest: String,
        /// Its bytes.
        size: u64,
        /// Bytes that stay.
        kept: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// A record that is too large.
    #[error(
        "the record of manifest {manifest} has {}, at most {} are kept; its annotations are too large",
        text::bytes(*.found),
        text::bytes(*.most)
    )]
    Record {
        /// The manifest.
        manifest: String,
        /// Bytes of the record.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// The file system, a full disk among others.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}
