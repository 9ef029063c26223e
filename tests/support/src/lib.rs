//! What tests, demo and benchmarks run against: a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, and KWOK in place of kubelets), started and stopped by itself, several side by side on one machine.
//!
//! Errors are `anyhow`: whoever uses this crate is a test or a task, and shows them to a person.

pub mod binaries;

mod addresses;
mod component;
mod control_plane;
mod log;
mod operator;
mod port;
mod skip;
mod watchdog;

pub use addresses::give_addresses;
pub use control_plane::{ControlPlane, Options, User, running};
pub use operator::{Operator, OperatorOptions};
pub use port::free_port;
pub use skip::skipped;
