//! Suites: documents of kind `PolicyTest`.

mod document;
mod find;
mod read;
mod schema;

pub use self::{
    document::{Absent, Component, Ending, Expect, ExpectCondition, ExpectObject, Given, Invariant, Limits, Observe, PolicyTest, Step},
    find::find,
    read::{Case, MAX_CASES, Origin, limits_of, read},
    schema::schema,
};
