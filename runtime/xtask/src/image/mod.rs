//! `image`: the operator's container image as an OCI archive, with no daemon and no other tool than a compiler. Two layers: what the binary
//! stands on (C library, CA certificates, a user), and the binary. The same inputs give the same digest: see docs/install.md.

mod archive;
mod base;
mod binary;
mod layer;
mod sbom;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::{
    archive::{Blob, Image},
    binary::Binary,
    layer::Layer,
};
use crate::{files, process, ui, workspace::Workspace};

const TASK: &str = "image";
/// What the image should not be larger than, compressed.
const AIM: usize = 60 << 20;
/// Where the binary is. The operator starts itself again to compile large components, by this very name.
const ENTRYPOINT: &str = "/usr/local/bin/weir";
/// The user of the process; no name in the cluster is bound to it.
const USER: &str = "65532:65532";

/// Flags.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Use this binary and compile nothing
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Compile for this target [default: this machine's]; one that is not this machine's has to be static, such as aarch64-unknown-linux-musl
    #[arg(long, value_name = "TRIPLE", conflicts_with = "binary")]
    target: Option<String>,
    /// Name of the image
    #[arg(long, value_name = "NAME[:TAG]", default_value = concat!("localhost/weir:", env!("CARGO_PKG_VERSION")))]
    name: String,
    /// Where it goes [default: image/weir-VERSION-ARCH.oci.tar in cargo's target directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// When it was made, in seconds since 1970; the time of the build would give every build another digest
    #[arg(long, env = "SOURCE_DATE_EPOCH", value_name = "SECONDS", default_value_t = 0)]
    created: u64,
}

/// Builds it and says its digest and size.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let name = if args.name.rsplit('/').next().is_some_and(|last| last.contains(':')) {
        args.name.clone()
    } else {
        format!("{}:latest", args.name)
    };
    let binary = match &args.binary {
        Some(file) => Binary::read(file)?,
        None => Binary::build(workspace, args.target.as_deref())?,
    };
    let base = base::of(&binary)?;
    let sbom = sbom::document(workspace, &binary, &base.packages, args.created)?;
    let mut program = Layer::new(args.created);
    program.file(ENTRYPOINT, 0o755, binary.bytes.clone())?;
    program.file("/usr/share/doc/weir/sbom.spdx.json", 0o644, sbom.clone())?;
    program.file(
        "/usr/share/doc/weir/LICENSE",
        0o644,
        files::read_text(&workspace.path("LICENSE"), "it is part of the source tree")?.into(),
    )?;
    let mut ground = Layer::new(args.created);
    for (path, mode, bytes) in base.files {
        ground.file(&path, mode, bytes)?;
    }
    ground.directory("/tmp", 0o1777);
    ground.directory("/var/cache/weir", 0o777);
    let (ground, program) = (ground.finish()?, program.finish()?);
    let config = config(workspace, args.created, binary.architecture, &[&ground.diff_id, &program.diff_id])?;
    let unpacked = ground.unpacked.saturating_add(program.unpacked);
    let image = Image { name, architecture: binary.architecture, config: Blob::new(config), layers: vec![ground.blob, program.blob] };
    let (digest, size) = (image.digest()?, image.size()?);
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| workspace.target().join(format!("image/weir-{}-{}.oci.tar", env!("CARGO_PKG_VERSION"), binary.architecture)));
    files::write_atomic(&file, &image.archive(args.created)?)?;
    let bill = file.with_extension("spdx.json");
    files::write_atomic(&bill, &sbom)?;
    let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    ui::progress(TASK, &format!("{} ({})", workspace.show(&file), image.name));
    ui::progress(TASK, &format!("{} to pull, {} unpacked, {}", mib(size), mib(unpacked), binary.architecture));
    ui::progress(TASK, &format!("SBOM in it and in {}", workspace.show(&bill)));
    ui::print(&digest);
    if size > AIM {
        bail!("the image has {}, more than the {} it may have; look at what the binary links", mib(size), mib(AIM));
    }
    Ok(())
}

/// The image's configuration.
fn config(workspace: &Workspace, created: u64, architecture: &str, diff_ids: &[&str]) -> Result<Vec<u8>> {
    let revision = process::ask(process::command(workspace, "git").args(["rev-parse", "HEAD"])).unwrap_or_default();
    let created = time(created)?;
    let mut labels = json!({
        "org.opencontainers.image.title": "weir",
        "org.opencontainers.image.description": "A Kubernetes operator for Kong gateways whose policies are WebAssembly components.",
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": created,
    });
    if let (Some(labels), false) = (labels.as_object_mut(), revision.trim().is_empty()) {
        labels.insert("org.opencontainers.image.revision".into(), Value::from(revision.trim()));
    }
    let config = json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "WorkingDir": "/",
            "Entrypoint": [ENTRYPOINT],
            "Env": ["PATH=/usr/local/bin", format!("SSL_CERT_FILE={}", base::CERTIFICATES)],
            "ExposedPorts": {"8080/tcp": {}, "8081/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [
            {"created": created, "created_by": "cargo xtask image: C library, CA certificates, user"},
            {"created": created, "created_by": "cargo xtask image: weir"},
        ],
    });
    serde_json::to_vec(&config).context("cannot write the image's configuration")
}

/// Seconds since 1970 in the form of RFC 3339.
fn time(seconds: u64) -> Result<String> {
    let days = i64::try_from(seconds / 86_400).context("SOURCE_DATE_EPOCH is no time")?;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    // Days to a date of the Gregorian calendar, in cycles of 400 years that begin with March.
    let shifted = days + 719_468;
    let (cycle, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + cycle * 400 + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z"))
}
