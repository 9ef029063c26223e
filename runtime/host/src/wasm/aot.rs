//! The only unsafe code of the crate: loading native code that wasmtime compiled earlier.

use wasmtime::{Engine, component::Component};

/// Loads what [`Engine::precompile_component`] made.
///
/// # Errors
/// wasmtime's, when the bytes are of another version or configuration, or damaged in a way it sees.
///
/// # Safety argument
/// `Component::deserialize` runs the bytes as native code, so they must come from wasmtime's compiler and be unchanged. This
/// function is reachable from two places only. `compile` passes what the compile child of this very executable wrote into a
/// directory that this process made with mode 0700 for that one compilation. `cache` passes a file of the AOT cache, which lies in
/// directories owned by this user and writable by nobody else, was written there by this function's own callers, and has the
/// SHA-256 it was stored with. Nothing from a registry, a ConfigMap or a user's path gets here: those are sniffed and refused
/// (`sniff`). Whoever can write these files can already run code as this user. The bytes are an owned copy, so no later change of
/// the file can reach the loaded code.
#[allow(unsafe_code, reason = "the one use that the design allows; argued above")]
pub(super) fn load(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: see "Safety argument".
    unsafe { Component::deserialize(engine, bytes) }
}
