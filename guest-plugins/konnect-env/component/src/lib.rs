//! The default policy of slot konnect-env as a component. A crate of its own, because the symbols that a component exports would
//! also be exported by every other component that links the library.

use konnect_env::DefaultPolicy;

weir_policy_sdk::export_konnect_env!(DefaultPolicy);
