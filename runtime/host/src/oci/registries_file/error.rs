//! Why a file is of no use.

use std::path::PathBuf;

use super::MAX_FILE;

/// Why a file is of no use. No value of a proxy is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Too large.
    #[error("it has more than {} MiB; leave out what is no registry", MAX_FILE >> 20)]
    TooLarge,
    /// Bytes.
    #[error("it is no UTF-8 text; write YAML")]
    NotText,
    /// Not the right fields, or not of the right type.
    #[error("{field} (line {line}) {said}")]
    Shape {
        /// The field.
        field: String,
        /// Where.
        line: u64,
        /// What is wrong, and what to write.
        said: String,
    },
    /// A value that cannot be used.
    #[error("{field}: {problem}")]
    Value {
        /// The field.
        field: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}
