//! Names of interfaces, and what they say of how a component is linked.

use serde::Serialize;
use weir_core::policy::CONTRACT_VERSION;

use crate::wasm::wasi;

/// The contract's package.
pub(super) const PACKAGE: &str = "weir:policy";

/// What a component is linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The log, and nothing else.
    Sealed,
    /// The log, and stubs of WASI that give nothing.
    StubWasi,
}

impl Profile {
    /// What is said of WASI.
    #[must_use]
    pub fn wasi(self) -> &'static str {
        match self {
            Self::Sealed => "none",
            Self::StubWasi => "stubbed",
        }
    }
}

/// `namespace:package/interface@version`, in parts; missing parts are empty.
pub(super) struct Name<'a> {
    path: &'a str,
    pub(super) package: &'a str,
    pub(super) interface: &'a str,
    pub(super) version: &'a str,
}

impl<'a> Name<'a> {
    pub(super) fn parse(full: &'a str) -> Self {
        let (path, version) = full.split_once('@').unwrap_or((full, ""));
        let (package, interface) = path.split_once('/').unwrap_or(("", path));
        Self { path, package, interface, version }
    }

    pub(super) fn is_wasi(&self) -> bool {
        self.package.starts_with("wasi:")
    }

    pub(super) fn is_given(&self) -> bool {
        wasi::given(self.path, self.version)
    }
}

/// Whether `version` is linked to the contract's: 0.1.x, no pre-release. wasmtime links by the same rule.
pub(super) fn on_track(version: &str) -> bool {
    let track = CONTRACT_VERSION.rsplit_once('.').map_or(CONTRACT_VERSION, |(track, _)| track);
    let patch = version.strip_prefix(track).and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
}
