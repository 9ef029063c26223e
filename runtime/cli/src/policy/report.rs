//! What commands print: lines for people, one document for machines.

use clap::ValueEnum;
use serde::Serialize;

use crate::exit::Exit;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// The flag of commands that print something.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Form::Text)]
    form: Form,
}

impl Output {
    /// Prints a document, or `text` for people.
    pub(crate) fn print(&self, document: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<Exit> {
        let text = match self.form {
            Form::Text => text(),
            Form::Json => serde_json::to_string_pretty(document)?,
            Form::Yaml => serde_saphyr::to_string(document)?,
        };
        crate::print(text.as_bytes())
    }
}

/// Lines of a name and a value.
#[derive(Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Adds a line; values come from strangers.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let value: String = value.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect();
        self.0.push_str(format!("{name:<11} {value}").trim_end());
        self.0.push('\n');
    }

    /// Adds a line per value.
    pub(crate) fn all<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a String>) {
        for value in values {
            self.add(name, value);
        }
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}

/// Characters that change what a terminal shows.
fn hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn strangers_do_not_move_the_cursor() {
        let mut lines = Lines::default();
        lines.add("annotation", "a=\x1b[2Jb\u{202e}c\nslots       all");
        lines.add("reference", "");
        assert_eq!(lines.text(), "annotation  a=\u{fffd}[2Jb\u{fffd}c\u{fffd}slots       all\nreference\n");
    }
}
