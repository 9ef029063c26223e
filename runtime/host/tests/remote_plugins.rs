//! Remote plugins against a real gRPC server over real TLS: certificates, the pool, faults, slots.

#![allow(unreachable_pub, missing_docs, reason = "modules of a test binary")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's way to fail")]

#[path = "remote_plugins/certificates.rs"]
mod certificates;
#[path = "remote_plugins/faults.rs"]
mod faults;
#[path = "remote_plugins/pool.rs"]
mod pool;
#[path = "remote_plugins/pressure.rs"]
mod pressure;
#[path = "remote_plugins/slots.rs"]
mod slots;
#[path = "remote_plugins/support.rs"]
mod support;
