//! The file as it is written.

use std::path::PathBuf;

use serde::Deserialize;

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
    pub(super) refused: Vec<String>,
    pub(super) private: Option<bool>,
    pub(super) loopback: Option<bool>,
}
