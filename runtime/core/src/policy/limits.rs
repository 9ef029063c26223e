//! Bounds on what a policy may answer. Checked before an answer is used, whatever adapter brought it.

use std::collections::BTreeSet;

use super::{EnvVar, Finding};

/// Most environment variables in one answer.
pub const MAX_ENV: usize = 256;
/// Most volumes, and most mounts, in one answer.
pub const MAX_VOLUMES: usize = 32;
/// Most findings in one answer.
pub const MAX_FINDINGS: usize = 64;
/// Longest value of one variable, bytes.
pub const MAX_VALUE: usize = 32 * 1024;
/// Longest message of a finding, a rejection or a hold, bytes.
pub const MAX_MESSAGE: usize = 1024;

/// At most `most` of `what`.
///
/// # Errors
/// Says how many there are.
pub fn count(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found > most {
        return Err(format!("{found} {what}, at most {most} are allowed"));
    }
    Ok(())
}

/// No name twice.
///
/// # Errors
/// Names the double.
pub fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what} {:?} occurs twice", cut(name)));
        }
    }
    Ok(())
}

/// Whether `text` has at most `most` bytes and no control character.
pub fn printable(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}

/// A short form of untrusted text for messages.
pub fn cut(text: &str) -> String {
    cut_at(text, 80)
}

/// At most `most` characters of untrusted text, without control characters.
pub fn cut_at(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// Names are C identifiers, values bounded, no name twice.
///
/// # Errors
/// Names the variable.
pub fn env(env: &[EnvVar]) -> Result<(), String> {
    count("environment variables", env.len(), MAX_ENV)?;
    unique("environment variable", env.iter().map(|e| e.name.as_str()))?;
    for var in env {
        if !weir_api::names::is_env_name(&var.name) {
            return Err(format!("environment variable {:?} is not a C identifier", cut(&var.name)));
        }
        if var.value.len() > MAX_VALUE || var.value.contains('\0') {
            return Err(format!("environment variable {:?} has a value over {MAX_VALUE} bytes or with a NUL", var.name));
        }
    }
    Ok(())
}

/// Codes, paths and messages are bounded.
///
/// # Errors
/// Names the finding.
pub fn findings(findings: &[Finding]) -> Result<(), String> {
    count("findings", findings.len(), MAX_FINDINGS)?;
    for finding in findings {
        code("finding", &finding.code)?;
        message("finding", &finding.message)?;
        if !printable(&finding.path, 512) {
            return Err(format!("finding {:?} has a path over 512 bytes or with control characters", finding.code));
        }
    }
    Ok(())
}

/// Codes become event reasons and metric labels: upper camel case, at most 64 characters.
///
/// # Errors
/// Names the code.
pub fn code(what: &str, code: &str) -> Result<(), String> {
    let first = code.chars().next().is_some_and(|c| c.is_ascii_uppercase());
    if first && code.len() <= 64 && code.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(format!("{what} code {:?} is not upper camel case of at most 64 letters and digits", cut(code)))
}

/// A message is bounded.
///
/// # Errors
/// Says its length.
pub fn message(what: &str, text: &str) -> Result<(), String> {
    if text.len() <= MAX_MESSAGE {
        return Ok(());
    }
    Err(format!("{what} message has {} bytes, at most {MAX_MESSAGE} are allowed", text.len()))
}
