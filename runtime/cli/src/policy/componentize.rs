//! `weir policy componentize`: the last step of a build.

use std::path::PathBuf;

use wit_component::ComponentEncoder;

use super::Common;
use crate::exit::{Exit, Failure};

pub(super) const HELP: &str = "\
Takes what `cargo build --target wasm32-unknown-unknown` makes of a crate with the SDK, or any core module with a contract inside of it.

Exit codes: 0 the component is written, 2 usage, 7 the module has no contract, or imports what no component gives it.

Example:
  weir policy componentize target/wasm32-unknown-unknown/release/my_policy.wasm -o target/policy.wasm";

/// `weir policy componentize`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The core module.
    #[arg(value_name = "MODULE")]
    module: PathBuf,
    /// Where the component is written.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let module = super::files::whole(&args.module, super::MOST_COMPONENT)?;
    let unfit = |why: String| Failure { exit: Exit::Incompatible, message: format!("{}: {why}", args.module.display()) };
    let encoded = ComponentEncoder::default().validate(true).module(&module).and_then(|encoder| encoder.encode());
    let component = encoded.map_err(|error| unfit(format!("{error:#}")))?;
    super::files::write(&args.output, |out| out.write_all(&component))?;
    args.common.say(&format!("{} has {} bytes", args.output.display(), component.len()));
    Ok(Exit::Done)
}
