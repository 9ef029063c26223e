//! Which tools made a component, as it says itself in its `producers` sections.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{KnownCustom, Parser, Payload, ProducersSectionReader};

use super::text;

/// Tools kept; more say nothing about where a component came from.
const MAX_TOOLS: usize = 64;

/// Tools by field (`language`, `processed-by`, `sdk`), each with its version where it tells one.
pub type Producers = BTreeMap<String, BTreeSet<String>>;

/// Reads the sections of a component and of everything nested in it. They are hints: sections that cannot be read are left out.
#[must_use]
pub fn read(bytes: &[u8]) -> Producers {
    let mut found = Producers::new();
    let mut left = MAX_TOOLS;
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { break };
        if let Payload::CustomSection(section) = payload
            && let KnownCustom::Producers(section) = section.as_known()
        {
            add(&section, &mut found, &mut left);
        }
    }
    found
}

fn add(section: &ProducersSectionReader<'_>, found: &mut Producers, left: &mut usize) {
    for field in section.clone().into_iter().map_while(Result::ok) {
        for tool in field.values.into_iter().map_while(Result::ok) {
            let named = format!("{} {}", text::cut(tool.name), text::cut(tool.version)).trim_end().to_owned();
            let Some(fewer) = left.checked_sub(1) else { return };
            if found.entry(text::cut(field.name)).or_default().insert(named) {
                *left = fewer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A custom section of a core module.
    fn section(fields: &[(&str, &str, &str)]) -> Vec<u8> {
        let word = |text: &str| [&[u8::try_from(text.len()).unwrap_or(0)][..], text.as_bytes()].concat();
        let mut body = [word("producers"), vec![u8::try_from(fields.len()).unwrap_or(0)]].concat();
        for (field, tool, version) in fields {
            body.extend([word(field), vec![1], word(tool), word(version)].concat());
        }
        [&b"\0asm\x01\0\0\0\0"[..], &[u8::try_from(body.len()).unwrap_or(0)], &body].concat()
    }

    #[test]
    fn tools_are_named_with_their_versions() {
        let found = read(&section(&[("language", "Rust", ""), ("processed-by", "rustc", "1.95.0"), ("sdk", "x\x1b[2J", "1")]));
        let shown: Vec<String> = found.iter().map(|(field, tools)| format!("{field}: {tools:?}")).collect();
        assert_eq!(shown, [r#"language: {"Rust"}"#, r#"processed-by: {"rustc 1.95.0"}"#, r#"sdk: {"x[2J 1"}"#]);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert!(read(b"no wasm").is_empty());
        assert!(read(&section(&[("tool", "of an unknown field", "1")])).is_empty());
        let cut = section(&[("language", "Rust", "")]);
        assert!(read(&cut[..cut.len() - 3]).is_empty());
    }
}
