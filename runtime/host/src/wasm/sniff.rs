//! What bytes that were handed in as a policy really are.

use wasmtime::Engine;

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// What bytes are that are no component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// A core module.
    #[error("it is a core module, not a component; wrap it with `wasm-tools component new`")]
    CoreModule,
    /// The magic number of WebAssembly, and a version that nobody knows.
    #[error("it is WebAssembly of an unknown version, neither a core module nor a component; build it with a current tool")]
    Version,
    /// Nothing.
    #[error("it is empty; publish the component again")]
    Empty,
    /// Made by wasmtime's compiler.
    #[error("it is native code compiled ahead of time, which is never loaded from outside; publish the component itself")]
    Precompiled,
    /// A program or a shared library.
    #[error("it is a native program (ELF), not a component; publish the component itself")]
    Elf,
    /// Compressed.
    #[error("it is a gzip archive, not a component; publish the component itself, neither compressed nor packed")]
    Gzip,
    /// Compressed.
    #[error("it is a zstd archive, not a component; publish the component itself, neither compressed nor packed")]
    Zstd,
    /// Packed.
    #[error("it is a zip archive, not a component; publish the component itself, neither compressed nor packed")]
    Zip,
    /// Packed.
    #[error("it is a tar archive, not a component; publish the component itself, neither compressed nor packed")]
    Tar,
    /// What somebody in between answers.
    #[error("it is an HTML page, not a component; was a login or error page downloaded?")]
    Html,
    /// A manifest, mostly.
    #[error("it is JSON, not a component; was a manifest downloaded instead of its layer?")]
    Json,
    /// The text format.
    #[error("it is WebAssembly text, not a component; convert it with `wasm-tools parse`")]
    WasmText,
    /// Any other text.
    #[error("it is text, not a component; publish what was compiled")]
    Text,
    /// Anything else.
    #[error("it is no WebAssembly (the bytes do not start with `\\0asm`); publish the component itself")]
    Unknown,
}

/// `Ok` when the bytes start as a component does.
///
/// # Errors
/// What the bytes are instead.
pub(crate) fn component(bytes: &[u8]) -> Result<(), Foreign> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(foreign(bytes)) };
    if rest.starts_with(COMPONENT) {
        Ok(())
    } else if rest.starts_with(CORE_MODULE) {
        Err(Foreign::CoreModule)
    } else {
        Err(Foreign::Version)
    }
}

fn foreign(bytes: &[u8]) -> Foreign {
    if bytes.is_empty() {
        Foreign::Empty
    } else if Engine::detect_precompiled(bytes).is_some() {
        Foreign::Precompiled
    } else if bytes.starts_with(b"\x7fELF") {
        Foreign::Elf
    } else if bytes.starts_with(&[0x1f, 0x8b]) {
        Foreign::Gzip
    } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Foreign::Zstd
    } else if bytes.starts_with(b"PK\x03\x04") {
        Foreign::Zip
    } else if bytes.get(257..262) == Some(b"ustar") {
        Foreign::Tar
    } else {
        text(bytes)
    }
}

fn text(bytes: &[u8]) -> Foreign {
    // 512 bytes are enough to know a text; a cut in a character is no other text.
    let head = bytes.get(..512).unwrap_or(bytes);
    let head = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => head.get(..e.valid_up_to()).map_or("", |h| std::str::from_utf8(h).unwrap_or_default()),
        Err(_) => return Foreign::Unknown,
    };
    let head = head.trim_start().to_ascii_lowercase();
    if head.starts_with("<!doctype") || head.starts_with("<html") {
        Foreign::Html
    } else if head.starts_with('{') {
        Foreign::Json
    } else if head.starts_with("(component") || head.starts_with("(module") || head.starts_with(";;") {
        Foreign::WasmText
    } else {
        Foreign::Text
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Foreign, component};
    use crate::wasm::engine;

    /// What wasmtime makes of an empty component.
    pub(crate) fn native() -> Vec<u8> {
        engine::compile_only().unwrap().precompile_component(&wat::parse_str("(component)").unwrap()).unwrap()
    }

    #[test]
    fn each_kind_of_file_is_named() {
        assert_eq!(component(b"\0asm\x0d\0\x01\0"), Ok(()));
        for (bytes, foreign) in [
            (&b"\0asm\x01\0\0\0"[..], Foreign::CoreModule),
            (b"\0asm\x09\0\0\0", Foreign::Version),
            (b"\0asm", Foreign::Version),
            (b"", Foreign::Empty),
            (b"\x7fELF\x02\x01\x01", Foreign::Elf),
            (b"\x1f\x8b\x08", Foreign::Gzip),
            (b"\x28\xb5\x2f\xfd", Foreign::Zstd),
            (b"PK\x03\x04", Foreign::Zip),
            (b" <!DOCTYPE html><title>", Foreign::Html),
            (b"{\"schemaVersion\":2}", Foreign::Json),
            (b"(component)", Foreign::WasmText),
            ("grüße".as_bytes(), Foreign::Text),
            (b"\xff\xfe\xfd", Foreign::Unknown),
        ] {
            assert_eq!(component(bytes), Err(foreign));
        }
        assert!(Foreign::CoreModule.to_string().contains("wasm-tools component new"));
    }

    #[test]
    fn native_code_is_told_from_other_programs() {
        assert_eq!(component(&native()), Err(Foreign::Precompiled));
    }
}
