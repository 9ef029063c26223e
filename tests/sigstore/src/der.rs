//! As much of DER as certificates and time stamps need.

use anyhow::{Context, Result};

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8: u8 = 0x0c;
pub(crate) const TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// `[0]`, constructed.
pub(crate) const FIELD_0: u8 = 0xa0;

/// A value with its header.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len().to_be_bytes();
    let short: Vec<u8> = length.iter().copied().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match (content.len(), u8::try_from(content.len())) {
        (0..0x80, Ok(length)) => out.push(length),
        _ => {
            out.push(0x80 | u8::try_from(short.len()).unwrap_or(0x7f));
            out.extend(short);
        }
    }
    out.extend(content);
    out
}

/// The values inside of a value, with their headers.
pub(crate) fn parts(whole: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rest = split(whole)?.0;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (_, after) = split(rest)?;
        parts.push(rest.get(..rest.len() - after.len()).context("DER")?);
        rest = after;
    }
    Ok(parts)
}

/// The content of the first value, and what comes after it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let [_, length, rest @ ..] = bytes else { anyhow::bail!("DER ends too soon") };
    let (length, rest) = if *length < 0x80 {
        (usize::from(*length), rest)
    } else {
        let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f)).context("DER ends in a length")?;
        (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    rest.split_at_checked(length).context("DER ends in a value")
}
