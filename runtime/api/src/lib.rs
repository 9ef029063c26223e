//! Kong's and Weir's API types, the names and amounts Kubernetes knows, and manifests read from files. No client, no I/O.

pub mod condition;
pub mod crds;
pub mod dataplane;
pub mod keys;
pub mod konnect_extension;
pub mod konnect_v2;
pub mod manifest;
pub mod names;
pub mod plugin_installation;
pub mod quantity;
pub mod rbac;
pub mod reconcile_policy;
