//! The imperative shell: watches wake passes, [`dataplane`] and the other kinds gather what the core needs, [`apply`] is the only writer.
//!
//! "What happens when X changes": `<kind>/watches.rs` says whom it wakes, `<kind>/gather.rs` what a pass sees, `weir-core` what is decided,
//! [`apply`] what is written.

pub mod apply;
pub mod authority;
pub mod cache;
pub mod certificates;
pub mod clock;
pub mod config;
pub mod context;
pub mod dataplane;
mod error;
pub mod events;
pub mod grants;
pub mod health;
pub mod kong;
pub mod konnect_extension;
pub mod leader;
pub mod memory;
pub mod metrics;
pub mod plugin_installation;
pub mod policies;
pub mod queue;
pub mod reconcile_policy;
pub mod record;
pub mod registries;
pub mod remote;
mod run;
pub mod secrets;
mod setup;
pub mod telemetry;
pub mod watch;
pub mod world;

pub use self::{config::Config, error::Error, run::run, setup::connect};
