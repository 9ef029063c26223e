//! Files that an administrator writes in YAML: bounded, strict, and with errors that name file, field and cure.

use std::{
    fmt::Display,
    io::Read,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::text;

/// `apiVersion` of all of them.
pub(super) const API_VERSION: &str = "weir.dev/v1alpha1";
/// Largest file, bytes; of CAs and keys too.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// Why a file is of no use. No value of a proxy and no credentials are in it.
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
    #[error("it has more than {} MiB; leave out what does not belong there", MAX_FILE >> 20)]
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

/// A value that cannot be used.
pub(super) fn wrong(field: impl Into<String>, problem: impl Display) -> Problem {
    Problem::Value { field: field.into(), problem: problem.to_string() }
}

/// Reads a file and what `check` makes of it; `check` is given the directory that paths in the file are relative to.
pub(super) fn read<D: DeserializeOwned, T>(path: &Path, check: impl FnOnce(D, &Path) -> Result<T, Problem>) -> Result<T, FileError> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let read = || {
        let bytes = bounded(path)?;
        check(parse(std::str::from_utf8(&bytes).map_err(|_| Problem::NotText)?)?, directory)
    };
    read().map_err(|problem| FileError { path: path.to_owned(), problem })
}

/// Whether the document is what the reader takes it for.
pub(super) fn kind(api_version: &str, kind: &str, expected: &str) -> Result<(), Problem> {
    for (field, found, expected) in [("apiVersion", api_version, API_VERSION), ("kind", kind, expected)] {
        if found != expected {
            return Err(wrong(field, format!("it is \"{}\"; write {expected}", text::name(found))));
        }
    }
    Ok(())
}

/// A file of at most [`MAX_FILE`] bytes.
pub(super) fn bounded(path: &Path) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| Problem::Unreadable(error.to_string()))?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| Problem::Unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE { Err(Problem::TooLarge) } else { Ok(bytes) }
}

/// A file that a field names.
pub(super) fn named(field: &str, path: &Path) -> Result<Vec<u8>, Problem> {
    bounded(path).map_err(|problem| wrong(field, format!("{}: {problem}", path.display())))
}

/// Reads the text. Errors never quote it: proxies carry passwords.
fn parse<D: DeserializeOwned>(yaml: &str) -> Result<D, Problem> {
    let options = serde_saphyr::options! { with_snippet: false };
    let mut field = String::new();
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |from| {
        serde_path_to_error::deserialize(from).map_err(|error| {
            field = error.path().to_string();
            error.into_inner()
        })
    });
    parsed.map_err(|error: serde_saphyr::Error| Problem::Shape {
        line: error.location().map_or(0, |location| location.line()),
        field: field_of(field, &error),
        said: said(&error),
    })
}

/// The field that is meant: of an unknown one, where it is.
fn field_of(path: String, error: &serde_saphyr::Error) -> String {
    let unknown = if let serde_saphyr::Error::SerdeUnknownField { field, .. } = error { field.as_str() } else { "" };
    let path = path.strip_suffix(unknown).unwrap_or(&path).trim_end_matches('.');
    if matches!(path, "" | "?") { "the file".to_owned() } else { text::name(path) }
}

/// What is wrong, without the value that is.
fn said(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::SerdeUnknownField { field, expected, .. } = error {
        return format!("has no field `{}`; its fields are {}", text::name(field), expected.join(", "));
    }
    if let serde_saphyr::Error::SerdeMissingField { field, .. } = error {
        return format!("lacks `{field}`; write it");
    }
    if let serde_saphyr::Error::SerdeInvalidType { expected, .. } | serde_saphyr::Error::SerdeInvalidValue { expected, .. } = error {
        // Structs are maps to whoever writes YAML.
        let expected = if expected.starts_with("struct ") { "a map of its fields" } else { expected };
        return format!("has a value of the wrong type; write {expected}");
    }
    let words = error.to_string();
    // One value stands where several have to.
    for (start, write) in [("expected sequence start", "a sequence"), ("expected mapping start", "a map of its fields")] {
        if words.starts_with(start) {
            return format!("has a value of the wrong type; write {write}");
        }
    }
    format!("is no YAML of this format: {}", text::said(&words))
}
