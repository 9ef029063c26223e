//! The file as it is written.

use std::path::PathBuf;

use serde::Deserialize;

use super::error::Problem;
use crate::oci::text;

pub(super) const API_VERSION: &str = "weir.dev/v1alpha1";
pub(super) const KIND: &str = "Registries";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) allowed: Vec<String>,
    #[serde(default)]
    pub(super) registries: Vec<Entry>,
    #[serde(default)]
    pub(super) proxies: Proxies,
    #[serde(default)]
    pub(super) dial: Dial,
    pub(super) auth_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) prefix: String,
    #[serde(default)]
    pub(super) mirrors: Vec<Mirror>,
    #[serde(default)]
    pub(super) mirror_only: bool,
    pub(super) insecure: Option<bool>,
    pub(super) ca: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Mirror {
    pub(super) location: String,
    pub(super) insecure: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Proxies {
    pub(super) https: Option<String>,
    pub(super) http: Option<String>,
    pub(super) no_proxy: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Dial {
    pub(super) listed: Vec<String>,
    pub(super) private: Option<bool>,
    pub(super) loopback: Option<bool>,
}

/// Reads the text. Errors never quote it: proxies carry passwords.
pub(super) fn parse(yaml: &str) -> Result<Document, Problem> {
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
        field: named(field, &error),
        said: said(&error),
    })
}

/// The field that is meant: of an unknown one, where it is.
fn named(path: String, error: &serde_saphyr::Error) -> String {
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
