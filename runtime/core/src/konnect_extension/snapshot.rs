//! What one pass over a token-free KonnectExtension sees.

use std::collections::BTreeSet;

use jiff::Timestamp;
use weir_api::konnect_extension::KonnectExtension;

use crate::dataplane::snapshot::{Lookup, SecretFacts};

/// A DataPlane that names the extension. Sorted by namespace, then name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What one pass sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The time of the pass.
    pub now: Timestamp,
    /// The object.
    pub extension: KonnectExtension,
    /// The Secret that it names; unknown when it names none.
    pub secret: Lookup<SecretFacts>,
    /// DataPlanes whose spec names it and that are not being deleted themselves.
    pub users: BTreeSet<UserRef>,
}
