//! `weir remote`: remote plugins from a laptop, without a cluster.

mod probe;
pub(crate) mod sides;

use crate::exit::Exit;

/// Shown after the commands.
pub const HELP: &str = "\
Examples:
  weir remote probe 127.0.0.1:9090 --server-name plugin --ca plugin.crt --cert client.crt --key client.key";

/// `weir remote`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Look at a plugin as the operator would: connect, handshake, metadata, capabilities, slots, latency; or say exactly what is wrong.
    #[command(after_help = probe::HELP)]
    Probe(Box<probe::Args>),
}

/// Runs the command.
///
/// # Errors
/// Unreadable files and wrong usage.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Probe(args) => probe::run(args),
    }
}
