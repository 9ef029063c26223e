//! `image`: the operator's container image as an OCI archive, with no daemon and no other tool than a compiler. Two layers: what the binary
//! stands on (C library, CA certificates, a user), and the binary. The same inputs give the same digest: see docs/install.md.

mod binary;
mod sbom;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Result, bail};
use weir_image::{Compression, Operator, Parts, base};

use self::binary::Binary;
use crate::{files, process, ui, workspace::Workspace};

const TASK: &str = "image";
/// What the image should not be larger than, compressed.
const AIM: usize = 60 << 20;
/// Flags.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Use this binary and compile nothing
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Compile for this target [default: this machine's]; one that is not this machine's has to be static, such as aarch64-unknown-linux-musl
    #[arg(long, value_name = "TRIPLE", conflicts_with = "binary")]
    target: Option<String>,
    /// Compile with this profile; only a release is a product
    #[arg(long, value_enum, default_value_t = Profile::Release, conflicts_with = "binary")]
    profile: Profile,
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

/// Profiles of cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Profile {
    /// Optimised.
    Release,
    /// Quick to compile, for a node on this machine.
    Dev,
}

impl Profile {
    /// As cargo calls it in variables and on its command line, and the directory it writes to.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Release => ("RELEASE", "release", "release"),
            Self::Dev => ("DEV", "dev", "debug"),
        }
    }
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
        None => Binary::build(workspace, args.target.as_deref(), args.profile)?,
    };
    let base = base::of(&binary.program)?;
    let sbom = sbom::document(workspace, &binary, &base.packages, args.created)?;
    let licence = files::read_text(&workspace.path("LICENSE"), "it is part of the source tree")?;
    let documents = vec![("/usr/share/doc/weir/sbom.spdx.json", sbom.clone()), ("/usr/share/doc/weir/LICENSE", licence.into())];
    let revision = process::ask(process::command(workspace, "git").args(["rev-parse", "HEAD"])).unwrap_or_default();
    let Operator { image, unpacked } = Operator::new(Parts {
        name: &name,
        program: &binary.program,
        base,
        documents,
        env: Vec::new(),
        revision: revision.trim(),
        created: args.created,
        compression: Compression::best(),
    })?;
    let (digest, size) = (image.digest()?, image.size()?);
    let file = args.out.clone().unwrap_or_else(|| {
        workspace.target().join(format!("image/weir-{}-{}.oci.tar", env!("CARGO_PKG_VERSION"), binary.program.architecture))
    });
    files::write_atomic(&file, &image.archive(args.created)?)?;
    let bill = file.with_extension("spdx.json");
    files::write_atomic(&bill, &sbom)?;
    let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    ui::progress(TASK, &format!("{} ({})", workspace.show(&file), image.name));
    ui::progress(TASK, &format!("{} to pull, {} unpacked, {}", mib(size), mib(unpacked), binary.program.architecture));
    ui::progress(TASK, &format!("SBOM in it and in {}", workspace.show(&bill)));
    ui::print(&digest);
    if size > AIM && args.binary.is_none() && args.profile == Profile::Release {
        bail!("the image has {}, more than the {} it may have; look at what the binary links", mib(size), mib(AIM));
    }
    Ok(())
}
