//! ReconcilePolicy: which revision answers, what waits, what is gone back to, and what the status says of it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod activating;
mod approval;
mod breaker;
mod failing;
mod going_back;
mod looking;
mod random;
mod reading;
mod remote;
mod shadow;
mod stopped;
mod world;
