//! Container images made of files, with no daemon and no other tool: layers that are the same for the same files, the archive that every
//! engine reads, and what comes out of the Debian packages of the machine. `cargo xtask image` makes the operator's image with it, tests those
//! of a real node.
//!
//! Errors are `anyhow`: whoever uses this crate is a test or a task, and shows them to a person.

mod archive;
pub mod base;
mod layer;
mod operator;
mod process;
mod program;
#[cfg(test)]
mod tests;
mod time;

pub use archive::{Blob, Image};
pub use base::{Base, Package};
pub use flate2::Compression;
pub use layer::{Finished, Layer};
pub use operator::{ENTRYPOINT, Operator, Parts};
pub use program::Program;
pub use time::rfc3339;
