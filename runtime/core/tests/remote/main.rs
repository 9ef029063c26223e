//! Remote plugins: which Services are plugins, what is dialled, and what is said.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod certificates;
mod connection;
mod names;
mod settings;
mod world;
