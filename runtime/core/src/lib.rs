//! The functional core: what the operator wants, given what it sees.
//!
//! A pass is `Snapshot` -> [`dataplane::validate`] -> [`dataplane::decide`] -> [`dataplane::plan`] -> [`plan::Plan`]. Only `decide`
//! awaits, and only policies. There is no clock, no I/O, no randomness here: time is a field of the snapshot, effects are
//! variants of [`plan::Change`] that the shell carries out.

pub mod annotations;
mod conditions;
pub mod dataplane;
pub mod decisions;
pub mod events;
pub mod hash;
pub mod image;
pub mod konnect;
pub mod konnect_extension;
pub mod live;
pub mod names;
pub mod plan;
pub mod plugin_installation;
pub mod policy;
pub mod reconcile_policy;
pub mod remote;
