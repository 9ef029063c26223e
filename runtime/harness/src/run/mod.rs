//! Runs cases.

mod case;
mod many;

use std::{path::PathBuf, time::Duration};

pub use self::{
    case::Runner,
    many::{Plan, Shard, Totals, run},
};
use crate::suite::{Invariant, Origin};

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Everything is as expected.
    Passed,
    /// Something is not.
    Failed,
    /// It could not be judged: unreadable manifests, a component that is not there.
    Error,
}

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The step, counted from 1; none for the first pass.
    pub step: Option<usize>,
    /// What.
    pub message: String,
}

/// A case that ran.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Which one.
    pub origin: Origin,
    /// How it ended.
    pub status: Status,
    /// Why.
    pub misses: Vec<Miss>,
    /// How long it took, all passes.
    pub time: Duration,
    /// Calls of policies, those included that only check that the same comes again.
    pub calls: usize,
    /// The longest call.
    pub longest: Duration,
    /// Most memory of one call, bytes.
    pub memory: usize,
    /// Snapshots that were written.
    pub written: Vec<PathBuf>,
    /// Invariants that were not looked at, and why.
    pub except: Vec<(Invariant, String)>,
}
