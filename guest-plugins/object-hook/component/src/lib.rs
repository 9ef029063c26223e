//! The default policy of slot object-hook as a component. A crate of its own, because the symbols that a component exports would
//! also be exported by every other component that links the library.

use object_hook::DefaultPolicy;

weir_policy_sdk::export_object_hook!(DefaultPolicy);
