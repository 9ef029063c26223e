//! `weir policy schema`.

use crate::exit::Exit;

/// `weir policy schema`.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) fn run(_: &Args) -> anyhow::Result<Exit> {
    crate::print(format!("{:#}\n", weir_harness::suite::schema()).as_bytes())
}
