//! Log lines to the operator, the only import of a policy. The host cuts long lines and drops what is over its limits.
//!
//! ```
//! weir_policy_sdk::log::info("two claims merged");
//! ```

pub use crate::bindings::base::weir::policy::log::Level;

/// A line of level debug.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// A line of level info.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// A line of level warn.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// A line of level error.
pub fn error(message: &str) {
    write(Level::Error, message);
}

#[cfg(target_arch = "wasm32")]
fn write(level: Level, message: &str) {
    crate::bindings::base::weir::policy::log::log(&level, message);
}

/// There is no host in a native test.
#[cfg(not(target_arch = "wasm32"))]
fn write(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
}

/// Says why before the trap: the host sees a trap only as `unreachable`.
pub(crate) fn panics() {
    #[cfg(target_arch = "wasm32")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| error(&panic.to_string()))));
    }
}
