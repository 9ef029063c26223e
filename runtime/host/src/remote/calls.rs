//! The calls of a lease: typed, with a deadline, bounded both ways, and with every failure sorted.

mod ask;
mod hooks;
mod sort;

pub use self::ask::Caps;
pub(super) use self::ask::{Call, identity, probe};
pub use self::hooks::{Behavior, Stage, ValidationError, Verb};
