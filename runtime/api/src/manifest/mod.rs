//! Manifests: from YAML texts to typed objects, checked the way the API server checks them, without an API server.
//!
//! [`load`] is the way in. It reads texts ([`yaml`]), applies the schemas of custom resources ([`Schemas`]) with their
//! defaults and rules, and sorts what is right into [`Objects`]. What is wrong becomes a [`Problem`] that names file,
//! line, object and field and says what to do; it never hides what is right.

mod defaults;
mod explain;
mod identity;
mod load;
mod nearest;
mod objects;
mod path;
mod problem;
mod schema;
mod sealed;
mod strict;
mod typed;
pub mod yaml;

pub use self::{
    load::{Loaded, Source, load, values},
    objects::{Objects, Sourced},
    path::{FieldPath, Segment},
    problem::{Problem, ProblemKind, SourceRef},
    schema::{Finding, Schema, SchemaError, Schemas},
    sealed::Sealed,
};

#[cfg(test)]
mod tests;
