//! The `weir` command line. `main` only parses and exits; everything else is here, where tests reach it.

pub mod args;
pub mod cleanup;
mod cluster;
pub mod crds;
pub mod explain;
mod live;
pub mod migrate;
mod names;
pub mod operator;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod registry;
pub mod remote;

pub use weir_harness::exit;

use std::{io::Write, process::ExitCode};

use clap::CommandFactory;

use self::{
    args::{Cli, Command},
    exit::{Exit, Failure},
};

/// Runs a parsed command line and says how it ended.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Operator(args) => operator::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Remote(args) => remote::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Crds(args) => match args.action {
            Some(args::CrdsAction::Apply(args)) => crds::run(&args),
            None => print_crds(args.output),
        },
        Command::Cleanup(args) => cleanup::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Completion { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut out);
            print(&out)
        }
    };
    match result {
        Ok(exit) => exit.code(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weir: {error:#}");
            of_error(&error).code()
        }
    }
}

/// The exit code of an error: its own, else internal.
fn of_error(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Failure>().map_or(Exit::Internal, |failure| failure.exit)
}

fn print_crds(output: args::Output) -> anyhow::Result<Exit> {
    let crds = weir_api::crds::all();
    let text = match output {
        args::Output::Json => serde_json::to_string_pretty(&serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crds}))?,
        args::Output::Yaml => {
            let mut text = String::new();
            for crd in &crds {
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(crd)?);
            }
            text
        }
    };
    print(text.as_bytes())
}

/// Writes to standard output. A reader that went away (`| head`) is not an error.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| if bytes.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") }).and_then(|()| out.flush())
    {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(error.into()),
    }
}
