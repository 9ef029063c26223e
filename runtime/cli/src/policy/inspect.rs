//! `weir policy inspect`.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_core::policy::SlotName;
use weir_host::{
    oci::{Component, Layout},
    wasm::{
        MAX_COMPONENT, inspect,
        producers::{self, Producers},
    },
};

use super::{
    Common,
    report::{Lines, Output},
    source::{Source, source},
};
use crate::exit::Exit;

pub(super) const HELP: &str = "\
Everything about the component is read from its bytes; what an artifact's config says of them is not believed.

Examples:
  weir policy inspect registry.example/policies/konnect-env:1.0
  weir policy inspect my-policy.wasm -o json | jq -r '.imports[]'";

/// `weir policy inspect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look at.
    #[arg(value_name = "REF|FILE", value_parser = source)]
    source: Source,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    reference: String,
    layout: Layout,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    /// Nothing for a file, which has no manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_digest: Option<String>,
    layer_digest: String,
    component_digest: String,
    size: usize,
    contracts: Vec<String>,
    slots: Vec<SlotName>,
    imports: Vec<String>,
    exports: Vec<String>,
    /// What is given of WASI, if it asks for any: `none` or `stubbed`.
    wasi: &'static str,
    producers: Producers,
    annotations: BTreeMap<String, String>,
    notes: Vec<String>,
    /// Why nothing is known of what it imports and exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let report = Report::of(args.common.component(&args.source)?);
    let exit = if report.problem.is_some() { Exit::Incompatible } else { Exit::Done };
    Ok(args.output.print(&report, || report.text())?.max(exit))
}

impl Report {
    fn of(component: Component) -> Self {
        let (interfaces, problem) = match inspect::interfaces(&component.bytes, MAX_COMPONENT) {
            Ok(interfaces) => (interfaces, None),
            Err(error) => (inspect::Interfaces::default(), Some(error.to_string())),
        };
        Self {
            manifest_digest: (component.manifest_digest != component.layer_digest).then_some(component.manifest_digest),
            reference: component.reference,
            layout: component.layout,
            artifact_type: component.artifact_type,
            index_digest: component.index_digest,
            layer_digest: component.blob_digest,
            component_digest: component.layer_digest,
            size: component.bytes.len(),
            contracts: interfaces.contracts(),
            slots: interfaces.slots(),
            wasi: interfaces.profile().wasi(),
            producers: producers::read(&component.bytes),
            imports: interfaces.imports,
            exports: interfaces.exports,
            annotations: component.annotations,
            notes: component.notes,
            problem,
        }
    }

    fn text(&self) -> String {
        let mut lines = Lines::default();
        lines.add("reference", &self.reference);
        let kind = self.artifact_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        lines.add("layout", &format!("{}{kind}", self.layout.as_str()));
        lines.all("index", &self.index_digest);
        lines.all("manifest", &self.manifest_digest);
        if self.layer_digest != self.component_digest {
            lines.add("layer", &self.layer_digest);
        }
        lines.add("component", &self.component_digest);
        lines.add("size", &format!("{} bytes", self.size));
        lines.add("contract", &self.contracts.iter().map(|version| format!("weir:policy@{version}")).collect::<Vec<_>>().join(", "));
        lines.add("slots", &self.slots.iter().map(|slot| slot.as_str()).collect::<Vec<_>>().join(", "));
        lines.add("wasi", self.wasi);
        lines.all("import", &self.imports);
        lines.all("export", &self.exports);
        for (field, tools) in &self.producers {
            lines.add(field, &tools.iter().cloned().collect::<Vec<_>>().join(", "));
        }
        for (name, value) in &self.annotations {
            lines.add("annotation", &format!("{name}={value}"));
        }
        lines.all("note", &self.notes);
        lines.all("problem", &self.problem);
        lines.text()
    }
}
