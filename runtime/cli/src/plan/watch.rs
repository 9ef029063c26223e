//! `weir plan --watch`: plans again when an input changes, and prints what that changes.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use weir_host::wasm::Wasm;

use super::{Planned, once};
use crate::{
    args,
    exit::{Exit, Failure},
};

/// Between two looks at the files.
const LOOK: Duration = Duration::from_millis(300);
/// Looks without a further change before it is planned: editors write in several steps.
const CALM: u32 = 2;
/// Most files that are looked at.
const MAX_FILES: usize = 10_000;
/// Deepest folder below one that is named.
const MAX_DEPTH: usize = 32;
/// Lines of context.
const CONTEXT: usize = 3;

/// What tells one state of the inputs from another.
type State = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Plans, and stays.
///
/// # Errors
/// Usage; when the first plan cannot be made at all. Later ones say why, and the plan that was printed stays the one to compare with.
pub(super) fn run(args: &args::Plan, host: &Wasm) -> anyhow::Result<Exit> {
    if args.filenames.iter().any(|name| name.as_os_str() == "-") {
        return Err(Failure::usage("--watch: standard input is read once; name files").into());
    }
    let mut known = state(args)?;
    let mut last = once(args, host)?;
    say(&last, &last.text)?;
    loop {
        known = change(args, known);
        match once(args, host) {
            Ok(planned) => {
                let differs = difference(&last.text, &planned.text);
                if differs.is_empty() && planned.said == last.said {
                    continue;
                }
                say(&planned, &differs)?;
                last = planned;
            }
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "weir plan: {error:#}; what was planned before stands");
            }
        }
    }
}

fn say(planned: &Planned, text: &str) -> anyhow::Result<()> {
    if !text.is_empty() {
        crate::print(text.as_bytes())?;
    }
    let _ = std::io::stderr().lock().write_all(&planned.said);
    Ok(())
}

/// What changed of the output.
fn difference(before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(CONTEXT).header("before", "now").to_string()
}

/// Waits until the inputs are others than `known`, and calm. Inputs that cannot be looked at now are looked at again: an editor may have taken a
/// file away for a moment.
fn change(args: &args::Plan, known: State) -> State {
    let mut seen = known.clone();
    let mut calm = 0;
    loop {
        thread::sleep(LOOK);
        let Ok(now) = state(args) else { continue };
        calm = if now == seen { calm + 1 } else { 0 };
        seen = now;
        if calm >= CALM && seen != known {
            return seen;
        }
    }
}

/// Size and time of every input file.
fn state(args: &args::Plan) -> Result<State, Failure> {
    let slots = args.policies.iter().chain(&args.settings).map(|(_, path)| path);
    let files = args.observed.iter().chain(&args.diff).chain(args.artifacts.iter().map(|(_, path)| path));
    let mut all = State::new();
    for path in args.filenames.iter().chain(slots).chain(files).filter(|path| !path.as_os_str().is_empty()) {
        walk(path, 0, &mut all).map_err(|error| Failure::usage(format!("--watch: {}: {error}", path.display())))?;
    }
    Ok(all)
}

fn walk(path: &Path, depth: usize, all: &mut State) -> std::io::Result<()> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_dir() {
        all.insert(path.to_owned(), (meta.len(), meta.modified().ok()));
        if all.len() > MAX_FILES {
            return Err(std::io::Error::other(format!("more than {MAX_FILES} files")));
        }
        return Ok(());
    }
    // Links to folders are not followed: a circle would never end.
    if depth > MAX_DEPTH || (depth > 0 && path.is_symlink()) {
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        walk(&entry?.path(), depth + 1, all)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_printed() {
        let before: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 20\n", "line twenty\n");
        let text = difference(&before, &after);
        assert!(text.contains("-line 20\n+line twenty\n") && !text.contains("line 1\n"), "{text}");
        assert_eq!(difference(&before, &before), "");
    }

    #[test]
    fn a_changed_file_is_another_state() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a/b.yaml");
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        std::fs::write(&file, "a").expect("written");
        let look = || {
            let mut all = State::new();
            walk(dir.path(), 0, &mut all).expect("looked at");
            all
        };
        let before = look();
        assert_eq!(before.len(), 1);
        std::fs::write(&file, "ab").expect("written");
        assert_ne!(look(), before);
    }
}
