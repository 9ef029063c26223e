//! Why a layer is not taken.

use crate::oci::text;

/// Bytes of a name that an error keeps.
const NAME: usize = 512;

/// Why a layer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One entry is refused.
    #[error("entry \"{}\" {problem}", text::name(.name))]
    Entry {
        /// Its name as the archive has it.
        name: String,
        /// Why.
        problem: EntryProblem,
    },
    /// Broken.
    #[error("the {what} is broken: {problem}; push it again")]
    Broken {
        /// gzip, zstd, tar.
        what: &'static str,
        /// Text of its reader.
        problem: String,
    },
    /// Neither archive nor file.
    #[error(
        "it is no tar archive (type \"{}\") and has no annotation org.opencontainers.image.title that would make it a file; push it with `oras push` or build an image",
        text::name(.media_type)
    )]
    NotArchive {
        /// Its type.
        media_type: String,
    },
    /// Compressed, and no tar.
    #[error("what it is compressed from is no tar archive; push the directory or an image")]
    NotTar,
    /// Too much content.
    #[error("its files have more than {} together, up to entry \"{}\"; leave out what does not belong to it", text::bytes(*.most), text::name(.name))]
    Total {
        /// Where the limit was passed.
        name: String,
        /// Bytes allowed.
        most: u64,
    },
    /// Too many.
    #[error("it has more than {most} files and directories; build the image `FROM scratch` and leave out what does not belong to it")]
    Files {
        /// Number allowed.
        most: usize,
    },
    /// A bomb.
    #[error("it unpacks to more than {}", text::bytes(*.most))]
    Bomb {
        /// Bytes allowed.
        most: u64,
    },
    /// A zstd frame that wants too much memory.
    #[error("its zstd window has {}, at most {} are allowed; compress it without --long or --ultra", text::bytes(*.found), text::bytes(*.most))]
    Window {
        /// Bytes wanted.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
}

impl Error {
    pub(super) fn entry(name: &[u8], problem: EntryProblem) -> Self {
        // A name may have megabytes, and errors are kept.
        let name = name.get(..NAME).unwrap_or(name);
        Self::Entry { name: String::from_utf8_lossy(name).into_owned(), problem }
    }
}

/// Why one entry is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// `..`
    #[error("leads out of its directory with `..`")]
    Traversal,
    /// `/…`
    #[error("is an absolute path; entries are relative")]
    Absolute,
    /// Nothing left.
    #[error("has no file name")]
    NoName,
    /// Bytes.
    #[error("has a name that is not UTF-8")]
    NotUtf8,
    /// Control characters, backslashes.
    #[error("has a control character, an invisible character or a backslash in its name")]
    Odd,
    /// Too long.
    #[error("has a path of {found} bytes, at most {most} are allowed")]
    Long {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// Too deep.
    #[error("is {found} levels deep, at most {most} are allowed")]
    Deep {
        /// Parts of the path.
        found: usize,
        /// Parts allowed.
        most: usize,
    },
    /// Links, devices and the like.
    #[error("is a {0}; only files and directories are taken")]
    Kind(&'static str),
    /// Too large.
    #[error("has {}, at most {} are allowed", text::bytes(*.found), text::bytes(*.most))]
    Large {
        /// Bytes declared.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// Ends early.
    #[error("ends after {found} of {declared} bytes; push it again")]
    Short {
        /// Bytes found.
        found: u64,
        /// Bytes declared.
        declared: u64,
    },
    /// Twice in one layer.
    #[error("occurs twice in one layer, so that readers differ in what it holds")]
    Twice,
    /// File and directory in one layer.
    #[error("is both a file and a directory in one layer")]
    Both,
}
