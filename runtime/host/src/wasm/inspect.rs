//! Reads what a file is and what a component imports and exports, before anything is compiled.

mod name;

use serde::Serialize;
use wasmparser::{Encoding, Parser, Payload};
use weir_core::policy::{CONTRACT_VERSION, PolicyError, SlotName};

use self::name::{Name, PACKAGE, on_track};
use super::{
    sniff::{self, Foreign},
    text,
};

pub use self::name::Profile;

/// Names kept per direction; a component with more is not one of ours.
const MAX_NAMES: usize = 1_000;
/// Names listed in one report.
const MAX_LISTED: usize = 8;

/// Why a file cannot serve a slot. Each says what was found and what is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Larger than the configured cap.
    #[error("it has {found} bytes, at most {most} are allowed")]
    Size {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// Not a component at all.
    #[error(transparent)]
    NotComponent(#[from] Foreign),
    /// It does not parse.
    #[error("it is not a valid component: {0}")]
    Malformed(String),
    /// It needs or lacks something; one text for all of it.
    #[error("{}", .0.join("; "))]
    World(Vec<String>),
}

impl From<Error> for PolicyError {
    fn from(error: Error) -> Self {
        Self::Incompatible(error.to_string())
    }
}

/// Names at the outermost level of a component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Interfaces {
    /// What it needs, in order of appearance.
    pub imports: Vec<String>,
    /// What it offers, in order of appearance.
    pub exports: Vec<String>,
}

/// Reads imports and exports. `most` is the size cap in bytes.
///
/// # Errors
/// When `bytes` are too many, no component, or do not parse.
pub fn interfaces(bytes: &[u8], most: usize) -> Result<Interfaces, Error> {
    if bytes.len() > most {
        return Err(Error::Size { found: bytes.len(), most });
    }
    sniff::component(bytes)?;
    read(bytes).map_err(|e| Error::Malformed(text::cut(e.message())))
}

fn read(bytes: &[u8]) -> wasmparser::Result<Interfaces> {
    let mut found = Interfaces::default();
    // Nested modules and components have sections of their own; only the outermost level meets the host.
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        if let Payload::ModuleSection { .. } | Payload::ComponentSection { .. } = &payload {
            depth += 1;
        } else if let Payload::End(_) = &payload {
            depth = depth.saturating_sub(1);
        } else if depth == 0 {
            outermost(payload, &mut found)?;
        }
    }
    Ok(found)
}

fn outermost(payload: Payload<'_>, found: &mut Interfaces) -> wasmparser::Result<()> {
    if let Payload::ComponentImportSection(imports) = payload {
        for import in imports.into_iter().take(MAX_NAMES) {
            push(&mut found.imports, import?.name.full_name().as_ref());
        }
    } else if let Payload::ComponentExportSection(exports) = payload {
        for export in exports.into_iter().take(MAX_NAMES) {
            push(&mut found.exports, export?.name.full_name().as_ref());
        }
    } else if let Payload::Version { encoding, .. } = payload {
        debug_assert_eq!(encoding, Encoding::Component, "sniffed before");
    }
    Ok(())
}

fn push(names: &mut Vec<String>, name: &str) {
    if names.len() < MAX_NAMES {
        names.push(text::cut(name));
    }
}

impl Interfaces {
    /// Whether a component with these names serves `slot`.
    ///
    /// # Errors
    /// Every import too much and every export that is missing or of another version, in one report.
    pub fn check(&self, slot: SlotName) -> Result<(), Error> {
        done([self.import_problems(), self.export_problems(slot)].concat())
    }

    /// Whether it imports nothing but the log and what of WASI is given as stubs.
    ///
    /// # Errors
    /// Every import too much.
    pub fn check_imports(&self) -> Result<(), Error> {
        done(self.import_problems())
    }

    /// Whether it exports what `slot` asks for.
    ///
    /// # Errors
    /// Every export that is missing or of another version.
    pub fn check_exports(&self, slot: SlotName) -> Result<(), Error> {
        done(self.export_problems(slot))
    }

    /// How it is linked. Only of use if [`Interfaces::check_imports`] passes.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let stubbed = self.imports.iter().any(|import| Name::parse(import).is_wasi());
        if stubbed { Profile::StubWasi } else { Profile::Sealed }
    }

    /// The slots whose interface it exports, on the contract's track.
    #[must_use]
    pub fn slots(&self) -> Vec<SlotName> {
        let serves = |slot: &SlotName| self.exports_of(slot.as_str()).any(|export| on_track(Name::parse(export).version));
        SlotName::ALL.into_iter().filter(serves).collect()
    }

    /// The versions of the contract that its imports and exports are of.
    #[must_use]
    pub fn contracts(&self) -> Vec<String> {
        let names = self.imports.iter().chain(&self.exports).map(|name| Name::parse(name));
        let mut versions: Vec<String> = names.filter(|name| name.package == PACKAGE).map(|name| name.version.to_owned()).collect();
        versions.sort();
        versions.dedup();
        versions
    }

    fn exports_of(&self, interface: &str) -> impl Iterator<Item = &str> {
        let of_interface = move |export: &&str| {
            let name = Name::parse(export);
            name.package == PACKAGE && name.interface == interface
        };
        self.exports.iter().map(String::as_str).filter(of_interface)
    }

    /// `log` and the shared types, on the contract's track, and interfaces of WASI that have stubs; everything else is a door.
    fn import_problems(&self) -> Vec<String> {
        let mut report: Vec<String> = Vec::new();
        let mut wasi: Vec<&str> = Vec::new();
        let mut foreign: Vec<&str> = Vec::new();
        for import in &self.imports {
            let name = Name::parse(import);
            if name.is_wasi() {
                if !name.is_given() {
                    wasi.push(import);
                }
            } else if name.package != PACKAGE || !matches!(name.interface, "log" | "types") {
                foreign.push(import);
            } else if !on_track(name.version) {
                let offered = format!("{PACKAGE}/{}@{CONTRACT_VERSION}", name.interface);
                report.push(format!("it imports {import}, this host offers {offered}"));
            }
        }
        if !wasi.is_empty() {
            report.push(format!("it imports of WASI {}, which policies get no stub of: the ones of cli, clocks, filesystem, io, random and sockets 0.2 have stubs", list(&wasi)));
        }
        if !foreign.is_empty() {
            report.push(format!("it imports {}, a policy may import {PACKAGE}/log only", list(&foreign)));
        }
        report
    }

    fn export_problems(&self, slot: SlotName) -> Vec<String> {
        let mut report: Vec<String> = Vec::new();
        for interface in [slot.as_str(), "settings"] {
            self.report_export(interface, &mut report);
        }
        report
    }

    fn report_export(&self, interface: &str, report: &mut Vec<String>) {
        let found: Vec<&str> = self.exports_of(interface).collect();
        if found.iter().any(|export| on_track(Name::parse(export).version)) {
            return;
        }
        let version = SlotName::parse(interface).map_or(CONTRACT_VERSION, SlotName::contract);
        let needed = format!("{PACKAGE}/{interface}@{version}");
        if !found.is_empty() {
            report.push(format!("it exports {}, this host asks {needed}", list(&found)));
        } else if self.exports.is_empty() {
            report.push(format!("it does not export {needed}; it exports nothing"));
        } else {
            let all: Vec<&str> = self.exports.iter().map(String::as_str).collect();
            report.push(format!("it does not export {needed}; it exports {}", list(&all)));
        }
    }
}

fn done(report: Vec<String>) -> Result<(), Error> {
    if report.is_empty() { Ok(()) } else { Err(Error::World(report)) }
}

fn list(names: &[&str]) -> String {
    let mut text = names.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
