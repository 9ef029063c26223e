//! The file as it is written.

use std::path::PathBuf;

use serde::Deserialize;

pub(super) const KIND: &str = "Verification";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) prefix: Option<String>,
    #[serde(default)]
    pub(super) any_of: Vec<Verifier>,
    #[serde(default)]
    pub(super) all_of: Vec<Verifier>,
    #[serde(default)]
    pub(super) unsigned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Verifier {
    pub(super) public_key: Option<PublicKey>,
    pub(super) keyless: Option<Keyless>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PublicKey {
    pub(super) pem: Option<String>,
    pub(super) file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Keyless {
    pub(super) issuer: String,
    pub(super) subject: String,
}
