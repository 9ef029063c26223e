//! The default policy of slot plugin-packaging as a component; see `konnect-env/component` for why it is a crate of its own.

use plugin_packaging::DefaultPolicy;

weir_policy_sdk::export_plugin_packaging!(DefaultPolicy);
