//! Words on the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;

/// A step.
pub(crate) fn heading(text: &str) {
    if std::io::stdout().is_terminal() {
        println!("\n\u{1b}[1m{text}\u{1b}[0m");
    } else {
        println!("\n{text}");
    }
}

/// Something that happened.
pub(crate) fn say(text: &str) {
    println!("  {text}");
}

/// What differs between two environments.
pub(crate) fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        match (before.get(name), after.get(name)) {
            (old, new) if old == new => {}
            (old, new) => {
                for (sign, value) in [("-", old), ("+", new)] {
                    if let Some(value) = value {
                        say(&format!("{sign} {name}={value}"));
                    }
                }
            }
        }
    }
}
