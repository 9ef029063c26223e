//! What tests, demo and benchmarks run against: a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, and KWOK in place of kubelets), started and stopped by itself, several side by side on one machine; a real
//! registry and the programs that push to it; and nginx with Lua in place of a Kong that loads custom plugins.
//!
//! Errors are `anyhow`: whoever uses this crate is a test or a task, and shows them to a person.

pub mod binaries;
pub mod liar;
pub mod lua_proxy;
pub mod registry;

mod addresses;
mod component;
mod control_plane;
mod http;
mod log;
mod operator;
mod port;
mod server;
mod skip;
mod watchdog;

pub use addresses::give_addresses;
pub use control_plane::{ControlPlane, Options, User, running};
pub use operator::{Operator, OperatorOptions};
pub use port::free_port;
pub use skip::skipped;
