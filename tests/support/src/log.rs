//! What a component wrote before it failed.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the end of a log is looked at; a component's last words are shorter.
const END: u64 = 64 * 1024;

/// The last lines of a log, indented for an error message. A log that cannot be read is said to be so: the message it goes into
/// is about something worse.
pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    match end(path) {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let shown = lines.iter().skip(lines.len().saturating_sub(count)).map(|line| format!("  {line}"));
            shown.collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("  (its log cannot be read: {error})"),
    }
}

/// Whether the end of a log says that a port was lost to another process.
pub(crate) fn lost_a_port(path: &Path) -> bool {
    end(path).is_ok_and(|text| text.contains("address already in use"))
}

fn end(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_shown_indented_and_a_missing_log_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert!(last_lines(&path, 2).contains("cannot be read"));
        std::fs::write(&path, "a\nb\n\nbind: address already in use\n").unwrap();
        assert_eq!(last_lines(&path, 2), "  b\n  bind: address already in use");
        assert!(lost_a_port(&path));
    }
}
