//! `weir policy`: try, test, publish, fetch, look at and check components, without a cluster.

mod archive;
mod bench;
mod carried;
mod check;
mod componentize;
mod copy;
mod diff;
mod digest;
pub(crate) mod files;
mod inspect;
mod new;
mod pull;
mod push;
mod record;
pub(crate) mod report;
mod run;
mod schema;
mod source;
mod subject;
mod test;
mod verify;

use std::io::Write;

use weir_host::oci::{Component, Reference};

use self::source::Source;
use crate::{
    exit::{Exit, Failure},
    registry::{self, Lookup, Registry},
};

/// Shown after the commands.
pub const HELP: &str = "\
REF is registry/repository:tag, with @sha256:… to pin it. Where REF|FILE is asked for, what exists as a file is a file, and so is what starts
with `.` or `/` or ends in .wasm or .tar; write ./NAME to be sure.

Credentials are those of `docker login` ($DOCKER_CONFIG/config.json, ~/.docker/config.json, then podman's auth.json), credential helpers
included, unless --authfile names another docker config.

Exit codes:
  0  all done
  1  the policy refuses the settings
  2  usage, or an unreadable file
  3  the policy trapped while it was asked about settings
  4  the policy ran out of time or memory
  5  the registry does not give or take it: not found, no access, no trusted connection
  6  content that does not have its digest, or a signature that was wrong
  7  no component, or one that does not fit
  8  internal error

Examples:
  weir policy check my-policy.wasm
  weir policy push my-policy.wasm registry.example/policies/konnect-env:1.0
  weir policy inspect registry.example/policies/konnect-env:1.0 -o json";

/// What commands take in one transfer, bytes of blobs.
const MOST: u64 = 256 << 20;
/// Largest component, bytes.
const MOST_COMPONENT: u64 = weir_host::wasm::MAX_COMPONENT as u64;

/// `weir policy`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Begin a policy: a project that builds, tests and pushes at once.
    #[command(after_help = new::HELP)]
    New(new::Args),
    /// Turn a core module into a component: the last step of a build.
    #[command(after_help = componentize::HELP)]
    Componentize(componentize::Args),
    /// Ask a policy once, and say what it answers and what that costs.
    #[command(after_help = run::HELP)]
    Run(Box<run::Args>),
    /// Test policies with suites.
    #[command(after_help = test::HELP)]
    Test(Box<test::Args>),
    /// Say what a policy costs on this machine.
    #[command(after_help = bench::HELP)]
    Bench(Box<bench::Args>),
    /// Say what another policy would change.
    #[command(after_help = diff::HELP)]
    Diff(Box<diff::Args>),
    /// Write what a cluster has of DataPlanes as case directories, without secrets.
    #[command(after_help = record::HELP)]
    Record(Box<record::Args>),
    /// Print the JSON Schema of suites.
    Schema(schema::Args),
    /// Publish a component; equal content gets an equal digest, whenever and wherever it is pushed.
    #[command(after_help = push::HELP)]
    Push(push::Args),
    /// Fetch a component from any layout that tools push.
    #[command(after_help = pull::HELP)]
    Pull(pull::Args),
    /// Say what an artifact is: layout, digests, slots, imports and exports, tools, annotations.
    #[command(after_help = inspect::HELP)]
    Inspect(inspect::Args),
    /// Print what pins it: the reference with its digest, or the digest of a file.
    #[command(after_help = digest::HELP)]
    Digest(digest::Args),
    /// Say whether the operator would take it, step by step.
    #[command(after_help = check::HELP)]
    Check(check::Args),
    /// Say who signed an artifact, and whether that is enough.
    #[command(after_help = verify::HELP)]
    Verify(verify::Args),
    /// Copy an artifact to another registry or repository, byte for byte.
    #[command(after_help = copy::HELP)]
    Cp(copy::Args),
    /// Write an artifact into a file, as an OCI image layout in a tar archive.
    #[command(after_help = archive::SAVE_HELP)]
    Save(archive::SaveArgs),
    /// Push what `save` wrote.
    #[command(after_help = archive::LOAD_HELP)]
    Load(archive::LoadArgs),
}

/// Flags of all commands.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Registries.
    #[command(flatten)]
    pub registry: registry::Flags,
    /// Say nothing on standard error but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// See [`HELP`].
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::New(args) => new::run(args),
        Command::Componentize(args) => componentize::run(args),
        Command::Run(args) => run::run(args),
        Command::Test(args) => test::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Record(args) => record::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Push(args) => push::run(args),
        Command::Pull(args) => pull::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Digest(args) => digest::run(args),
        Command::Check(args) => check::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Cp(args) => copy::run(args),
        Command::Save(args) => archive::save(args),
        Command::Load(args) => archive::load(args),
    }
}

impl Common {
    fn open(&self) -> anyhow::Result<Registry> {
        Registry::new(&self.registry, Lookup::Docker, self.quiet)
    }

    /// For people; never on standard output.
    fn say(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "weir policy: {line}");
        }
    }

    /// The component that a registry has.
    fn pull(&self, reference: &Reference) -> anyhow::Result<Result<Component, weir_host::oci::Error>> {
        let registry = self.open()?;
        let credentials = registry.credentials(reference)?;
        Ok(registry.wait(registry.puller().component(reference, &credentials, MOST_COMPONENT)))
    }

    fn component(&self, source: &Source) -> anyhow::Result<Component> {
        match source {
            Source::Registry(reference) => Ok(self.pull(reference)?.map_err(|error| registry::pull(&error))?),
            Source::File(path) => Ok(weir_host::oci::local::component(path, MOST_COMPONENT).map_err(|error| registry::local(&error))?),
        }
    }
}

/// For clap.
fn reference(text: &str) -> Result<Reference, String> {
    Reference::parse(text).map_err(|error| error.problem.to_string())
}

/// A reference that something is pushed to.
fn target(text: &str) -> Result<Reference, String> {
    let reference = reference(text)?;
    match reference.digest() {
        Some(_) => Err("it names a digest, which follows from what is pushed; write registry/repository:tag".to_owned()),
        None => Ok(reference),
    }
}

/// An artifact that is pinned, as the operator takes it.
fn pinned(reference: &Reference, digest: &str) -> anyhow::Result<Reference> {
    Ok(reference.with_digest(digest).map_err(|error| Failure::usage(error.to_string()))?)
}
