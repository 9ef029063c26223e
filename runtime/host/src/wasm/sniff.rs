//! What a file that was handed in as a policy really is.

use wasmtime::Engine;

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// `Ok` when the bytes start as a component does.
///
/// # Errors
/// What the bytes are instead, and what to do about it.
pub(super) fn component(bytes: &[u8]) -> Result<(), &'static str> {
    if let Some(rest) = bytes.strip_prefix(MAGIC) {
        return if rest.starts_with(COMPONENT) {
            Ok(())
        } else if rest.starts_with(CORE_MODULE) {
            Err("it is a core module, not a component; wrap it with `wasm-tools component new`")
        } else {
            Err("it is WebAssembly of an unknown version, neither a core module nor a component")
        };
    }
    Err(foreign(bytes))
}

fn foreign(bytes: &[u8]) -> &'static str {
    if bytes.is_empty() {
        return "it is empty";
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return "it is native code compiled ahead of time, which is never loaded from outside; publish the component itself";
    }
    if bytes.starts_with(b"\x7fELF") {
        return "it is a native program (ELF), not a component";
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return "it is a gzip archive, not a component";
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return "it is a zstd archive, not a component";
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return "it is a zip archive, not a component";
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return "it is a tar archive, not a component";
    }
    text(bytes)
}

fn text(bytes: &[u8]) -> &'static str {
    // 512 bytes are enough to know a text; a cut in a character is no other text.
    let head = bytes.get(..512).unwrap_or(bytes);
    let head = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => head.get(..e.valid_up_to()).map_or("", |h| std::str::from_utf8(h).unwrap_or_default()),
        Err(_) => return "it is no WebAssembly (the bytes do not start with `\\0asm`)",
    };
    let head = head.trim_start().to_ascii_lowercase();
    if head.starts_with("<!doctype") || head.starts_with("<html") {
        "it is an HTML page, not a component; was a login or error page downloaded?"
    } else if head.starts_with('{') {
        "it is JSON, not a component; was a manifest downloaded instead of its layer?"
    } else if head.starts_with("(component") || head.starts_with("(module") || head.starts_with(";;") {
        "it is WebAssembly text, not a component; convert it with `wasm-tools parse`"
    } else {
        "it is text, not a component"
    }
}

#[cfg(test)]
mod tests {
    use super::component;

    #[test]
    fn each_kind_of_file_is_named() {
        let says = |bytes: &[u8], word: &str| {
            let text = component(bytes).err().unwrap_or("a component");
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        };
        says(b"\0asm\x0d\0\x01\0", "a component");
        says(b"\0asm\x01\0\0\0", "core module");
        says(b"\0asm\x09\0\0\0", "unknown version");
        says(b"", "empty");
        says(b"\x7fELF\x02\x01\x01", "ELF");
        says(b"\x1f\x8b\x08", "gzip");
        says(b" <!DOCTYPE html><title>", "HTML");
        says(b"{\"schemaVersion\":2}", "JSON");
        says(b"(component)", "wasm-tools parse");
        says("grüße".as_bytes(), "it is text");
        says(b"\xff\xfe\xfd", "no WebAssembly");
    }
}
