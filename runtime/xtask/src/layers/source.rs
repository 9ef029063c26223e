//! What the code of the pure crates reaches for.

use std::collections::BTreeMap;

use super::lexer::{Token, tokens};

/// A directory of pure code.
pub(super) struct Layer {
    /// From the workspace root.
    pub(super) dir: &'static str,
    /// Where `.await` may stand: files, or directories that end in `/`.
    pub(super) may_await: &'static [&'static str],
}

/// The pure crates. Only asking a policy takes time; the `mod.rs` of a kind is the driver that awaits `decide`.
pub(super) const PURE: [Layer; 2] = [
    Layer { dir: "runtime/api/src", may_await: &[] },
    Layer {
        dir: "runtime/core/src",
        may_await: &[
            "dataplane/mod.rs",
            "dataplane/decide/",
            "plugin_installation/mod.rs",
            "plugin_installation/decide.rs",
            "plugin_installation/package.rs",
            "plugin_installation/claims/settle.rs",
            "policy/",
        ],
    },
];

/// Path and what to do instead.
const FORBIDDEN: [(&str, &str); 11] = [
    ("std::fs", "pass the content in"),
    ("std::env", "pass the value in"),
    ("std::net", "address types are in core::net, connections belong to the shell"),
    ("std::process", "leave it to the shell"),
    ("std::thread", "leave it to the shell"),
    ("std::io::stdin", "pass the content in"),
    ("std::time::SystemTime", "time is the field `now` of the snapshot"),
    ("std::time::Instant", "time is the field `now` of the snapshot"),
    ("std::hash::RandomState", "iterate over ordered maps"),
    ("rand", "derive it from the input by a hash"),
    ("getrandom", "derive it from the input by a hash"),
];

/// Types of any crate whose `now` reads the clock.
const CLOCKS: [&str; 6] = ["Timestamp", "Zoned", "Utc", "Local", "SystemTime", "Instant"];

/// Violations in one file; `inside` is its path in the layer's directory.
pub(super) fn check(layer: &Layer, inside: &str, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let place = |line: usize| format!("{}/{inside}:{line}", layer.dir);
    let mut violations: Vec<String> = paths(&tokens)
        .into_iter()
        .filter_map(|path| forbidden(&path.segments).map(|(name, instead)| format!("{}: no {name} here; {instead}", place(path.line))))
        .collect();
    let may_await = layer.may_await.iter().any(|allowed| *allowed == inside || (allowed.ends_with('/') && inside.starts_with(allowed)));
    if !may_await {
        let awaits = tokens.windows(2).filter_map(|pair| match pair {
            [dot, word] if dot.text == "." && word.text == "await" => Some(word.line),
            _ => None,
        });
        violations.extend(awaits.map(|line| format!("{}: no .await here; only asking a policy takes time", place(line))));
    }
    violations
}

/// A path that the code names, with its `use` written out.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    segments: Vec<&'a str>,
    line: usize,
}

fn forbidden(segments: &[&str]) -> Option<(String, &'static str)> {
    for (path, instead) in FORBIDDEN {
        let path: Vec<&str> = path.split("::").collect();
        // `use std::*` and `use std::time::*` bring the forbidden name in without naming it.
        let by_glob = || segments.split_last().is_some_and(|(last, before)| *last == "*" && !before.is_empty() && path.starts_with(before));
        if segments.starts_with(&path) || by_glob() {
            return Some((segments.join("::"), instead));
        }
    }
    match segments {
        [.., clock, "now"] if CLOCKS.contains(clock) => Some((segments.join("::"), "time is the field `now` of the snapshot")),
        _ => None,
    }
}

/// Every path of two or more segments, in `use` trees and elsewhere, also inside macros.
fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.text == "use" {
            at = use_tree(tokens, at + 1, &[], &mut |path, name| {
                names.insert(name, path.segments.clone());
                found.push(path);
            });
        } else if is_word(token.text) {
            let (segments, next) = plain(tokens, at);
            if segments.len() > 1 {
                found.push(Named { segments, line: token.line });
            }
            at = next;
        } else {
            at += 1;
        }
    }
    for path in &mut found {
        // `use std::time; … time::Instant`: once is enough, nothing is gained by hiding.
        if let Some((first, rest)) = path.segments.split_first()
            && let Some(full) = names.get(first)
            && full.as_slice() != [*first]
        {
            path.segments = full.iter().chain(rest).copied().collect();
        }
    }
    found
}

/// `a::b::c` from `at` on, and where it ends.
fn plain<'a>(tokens: &[Token<'a>], mut at: usize) -> (Vec<&'a str>, usize) {
    let mut segments = Vec::new();
    while let Some(word) = tokens.get(at).filter(|token| is_word(token.text)) {
        segments.push(word.text);
        at += 1;
        if !is_separator(tokens, at) {
            break;
        }
        at += 2;
    }
    (segments, at)
}

/// One tree of a `use` from `at` on; tells each path with the name it gets here, and where the tree ends.
fn use_tree<'a>(tokens: &[Token<'a>], mut at: usize, prefix: &[&'a str], tell: &mut dyn FnMut(Named<'a>, &'a str)) -> usize {
    let mut segments = prefix.to_vec();
    if is_separator(tokens, at) {
        at += 2;
    }
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    let before = at;
                    at = use_tree(tokens, at, &segments, tell);
                    // A comma, or something unexpected that must not stop the walk.
                    if tokens.get(at).is_some_and(|token| token.text == ",") || at == before {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "self" if !segments.is_empty() => at += 1,
            word if is_word(word) || word == "*" => {
                segments.push(word);
                at += 1;
            }
            _ => return at,
        }
        if is_separator(tokens, at) {
            at += 2;
            continue;
        }
        let mut name = segments.last().copied().unwrap_or_default();
        if tokens.get(at).is_some_and(|token| token.text == "as") {
            name = tokens.get(at + 1).map_or(name, |token| token.text);
            at += 2;
        }
        tell(Named { segments, line: token.line }, name);
        return at;
    }
    at
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn is_separator(tokens: &[Token<'_>], at: usize) -> bool {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    is_colon(at) && is_colon(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &Layer = &Layer { dir: "core", may_await: &["dataplane/decide.rs", "policy/"] };

    #[test]
    fn every_way_to_name_a_forbidden_thing_is_found() {
        for source in [
            "fn f() { std::fs::read(\"x\"); }",
            "fn f() { ::std::env::var(\"x\"); }",
            "use std::fs;",
            "use std::{collections::BTreeMap, fs::{self, File}};",
            "use std::time::{Duration, SystemTime};",
            "use std::time; fn f() { time::Instant::now(); }",
            "use std as s; fn f() { s::net::lookup(); }",
            "use std::*;",
            "use std::time::*;",
            "use rand::Rng;",
            "use rand;",
            "fn f() { vec![std::env::var(\"x\")] }",
            "fn f() { jiff::Timestamp::now() }",
            "use jiff::Zoned as Z; fn f() { Z::now() }",
        ] {
            assert!(!check(CORE, "plan.rs", source).is_empty(), "{source}");
        }
    }

    #[test]
    fn pure_code_passes() {
        let source = "
            //! Not std::fs.
            use std::{collections::BTreeMap, time::Duration};
            use super::*;
            /// See [`std::env::var`].
            fn f(now: u64, rand: u8) -> Duration { let env = snapshot.env.now; message(\"std::net\", env::of(rand)) }
            #[cfg(test)] mod tests { fn t() { std::fs::read(\"case\"); x.await } }";
        assert_eq!(check(CORE, "plan.rs", source), Vec::<String>::new());
    }

    #[test]
    fn await_is_for_asking_policies() {
        let source = "async fn f() {\n    x\n        .await;\n}";
        assert_eq!(check(CORE, "dataplane/plan.rs", source), ["core/dataplane/plan.rs:3: no .await here; only asking a policy takes time"]);
        assert!(check(CORE, "dataplane/decide.rs", source).is_empty());
        assert!(check(CORE, "policy/mod.rs", source).is_empty());
        assert!(!check(CORE, "policy.rs", source).is_empty());
    }

    #[test]
    fn a_violation_says_where_and_what_instead() {
        assert_eq!(check(CORE, "names.rs", "\nuse std::env;"), ["core/names.rs:2: no std::env here; pass the value in"]);
    }
}
