//! A core module that was never made a component. The host must say so instead of failing to parse it.

/// So that the module has a function at all.
#[allow(unsafe_code, reason = "an exported name is the point")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> i32 {
    42
}
