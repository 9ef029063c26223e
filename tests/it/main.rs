//! One binary for everything that needs more than one crate: case directories, properties, hostile guests, the command line.
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
mod properties;
mod support;

use libtest_mimic::Arguments;

fn main() {
    let args = Arguments::from_args();
    let mut tests = cases::tests();
    tests.extend(properties::tests());
    tests.extend(hostile::tests());
    tests.extend(cli::tests());
    libtest_mimic::run(&args, tests).exit();
}
