//! One binary for everything that needs more than one crate: case directories, properties, hostile guests, the command line, artifacts
//! out of a real registry, and the operator against a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may stop at the first thing that is not as it should be"
)]

mod cases;
mod cli;
mod hostile;
mod kube;
mod policy_cli;
mod policy_test;
mod properties;
mod registry;
mod remote;
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Some(code) = kube::as_weir() {
        return code;
    }
    if let Some(code) = registry::as_puller().or_else(hostile::as_host) {
        return code;
    }
    let mut args = Arguments::from_args();
    // Most of them wait for a control plane and not for a processor.
    args.test_threads.get_or_insert(4);
    let mut tests = cases::tests();
    tests.extend(properties::tests());
    tests.extend(hostile::tests());
    tests.extend(cli::tests());
    tests.extend(policy_cli::tests());
    tests.extend(policy_test::tests());
    tests.extend(registry::tests());
    tests.extend(remote::tests());
    tests.extend(kube::tests());
    let conclusion = libtest_mimic::run(&args, tests);
    kube::tear_down();
    conclusion.exit_code()
}
