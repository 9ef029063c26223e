//! Plugins in a DataPlane, and whose word rolls its pods.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may stop at the first thing that is wrong"
)]

mod blue_green;
mod client;
mod cluster;
mod deciders;
mod extension;
mod foreign;
mod installed;
mod manual;
mod missing;
mod names;
mod on_failure;
mod policies;
#[path = "../support/mod.rs"]
mod support;
mod takeover;
mod undone;
mod world;
