//! `weir policy push`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use weir_host::oci::{Package, PackageError, Reference, Upload};

use super::{Common, files, report::Output, target};
use crate::{
    exit::{Exit, Failure},
    registry,
};

pub(super) const HELP: &str = "\
What is printed pins the artifact: use it where a policy is named. With --created and other annotations the digest is another.

Examples:
  weir policy push my-policy.wasm registry.example/policies/konnect-env:1.0
  weir policy push my-policy.wasm registry.example/policies/konnect-env:1.0 \\
      --annotation org.opencontainers.image.source=https://git.example/policies
  weir policy push my-policy.wasm registry.gitlab.example/team/policy:1.0 --layout legacy";

/// `weir policy push`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The component.
    file: PathBuf,
    /// Where it goes: registry/repository:tag.
    #[arg(value_name = "REF", value_parser = target)]
    reference: Reference,
    /// How it is packed.
    #[arg(long, value_enum, default_value_t = Layout::Cncf)]
    layout: Layout,
    /// Annotation of the manifest. Repeatable.
    #[arg(long = "annotation", value_name = "NAME=VALUE", value_parser = annotation)]
    annotations: Vec<(String, String)>,
    /// When it was made, in seconds since 1970 or as RFC 3339; the time of the push would give every push another digest.
    #[arg(long, env = "SOURCE_DATE_EPOCH", value_name = "TIME", default_value = "0", value_parser = created)]
    created: jiff::Timestamp,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

/// Layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// That of the CNCF (`application/vnd.wasm.config.v0+json`), which says what the component imports and exports.
    Cncf,
    /// The one before it (`application/vnd.wasm.config.v1+json`), for registries that refuse the other.
    Legacy,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    reference: String,
    digest: String,
    component_digest: String,
    size: usize,
    layout: &'static str,
    blobs_sent: usize,
    blobs_present: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let wasm = files::read(&args.file)?;
    let upload = pack(args, &wasm)?;
    let registry = args.common.open()?;
    let credentials = registry.credentials(&args.reference)?;
    let pushed = registry.wait(registry.puller().push(&args.reference, &credentials, &upload)).map_err(|error| registry::push(&error))?;
    args.common.say(&format!("{} blob(s) sent, {} there already", pushed.sent, pushed.present));
    let report = Report {
        reference: pushed.reference.to_string(),
        digest: pushed.digest,
        component_digest: upload.blobs.last().map(|layer| layer.digest.clone()).unwrap_or_default(),
        size: wasm.len(),
        layout: match args.layout {
            Layout::Cncf => "cncf",
            Layout::Legacy => "legacy",
        },
        blobs_sent: pushed.sent,
        blobs_present: pushed.present,
    };
    args.output.print(&report, || report.reference.clone())
}

fn pack(args: &Args, wasm: &[u8]) -> Result<Upload, Failure> {
    let mut annotations = BTreeMap::new();
    for (name, value) in &args.annotations {
        if annotations.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("--annotation {name} is there twice")));
        }
    }
    let title = args.file.file_name().unwrap_or_default().to_string_lossy();
    let package = Package { annotations, created: args.created, ..Package::new(wasm, &title) };
    let packed = match args.layout {
        Layout::Cncf => package.cncf(),
        Layout::Legacy => package.legacy(),
    };
    packed.map_err(|error| match error {
        PackageError::Component(error) => Failure { exit: Exit::Incompatible, message: format!("{}: {error}", args.file.display()) },
        PackageError::NoName | PackageError::Annotations { .. } => Failure::usage(format!("--annotation: {error}")),
    })
}

fn created(text: &str) -> Result<jiff::Timestamp, String> {
    let wrong = || format!("{text:?} is no time: write seconds since 1970, or for example 2026-01-01T00:00:00Z");
    match text.parse::<i64>() {
        Ok(seconds) => jiff::Timestamp::from_second(seconds).map_err(|_| wrong()),
        Err(_) => text.parse().map_err(|_| wrong()),
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "write NAME=VALUE".into())
}

#[cfg(test)]
mod tests {
    use super::{annotation, created};

    #[test]
    fn an_annotation_is_a_name_and_a_value() {
        assert_eq!(annotation("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(annotation("a"), Err("write NAME=VALUE".into()));
    }

    #[test]
    fn times_are_seconds_or_dates() {
        let shown = |text: &str| created(text).map(|time| time.to_string());
        assert_eq!(shown("0"), Ok("1970-01-01T00:00:00Z".into()));
        assert_eq!(shown("1767225600"), shown("2026-01-01T00:00:00Z"));
        assert!(shown("yesterday").is_err());
    }
}
