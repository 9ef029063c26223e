//! The `weir` binary.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Hidden: the process that compiles large components under resource limits. Not clap's, so that no output can disturb it.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == weir_host::wasm::COMPILE_CHILD_ARG) {
        return weir_host::wasm::compile_child_main(arguments);
    }
    weir_cli::run(weir_cli::args::Cli::parse())
}
