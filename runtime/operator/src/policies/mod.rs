//! Who answers the questions of passes: policies that are loaded here, and which of them is for which object.

mod any;
mod base;
mod book;
mod guard;
mod remote;
mod revisions;
mod samples;
mod shadow;

pub use self::{
    any::{AnyPolicy, Served},
    base::Base,
    book::{Book, Place, Service},
    guard::Breakers,
    revisions::{Body, Recipe, Revision, RevisionId, Revisions},
    samples::{Questions, Sampled, Samples},
    shadow::{Beside, Shadow},
};
