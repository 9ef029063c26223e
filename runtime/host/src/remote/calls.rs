//! The calls of a lease: typed, with a deadline, bounded both ways, and with every failure sorted.

mod ask;
mod hooks;
mod sort;

pub(super) use self::ask::{Call, Caps, identity, probe};
pub use self::hooks::{Behavior, Stage, ValidationError, Verb};
