//! The default policy of slot conflict-resolution as a component; see `konnect-env/component` for why it is a crate of its own.

use conflict_resolution::DefaultPolicy;

weir_policy_sdk::export_conflict_resolution!(DefaultPolicy);
