//! A directory is a case: `tests/cases/<kind>/<name>/{case.yaml, input/, observed/, expected.yaml}`, and the artifacts that it names.
//!
//! `case.yaml` is a suite of one case (docs/policy-tests.md), and what runs it is what `weir policy test` runs. `expected.yaml` is its snapshot,
//! written by `cargo xtask test --bless` and read by a person in review. A digest of a guest never stands in a case: it is replaced by its name.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use libtest_mimic::Trial;
use weir_harness::{
    pass::Kinds,
    run::{Ran, Runner, Status},
    stock::{Components, Stock},
    suite,
};
use weir_host::wasm::Limits;

use crate::support::{host, root};

/// One test per case directory; no case at all is a failure.
pub(crate) fn tests() -> Vec<Trial> {
    let base = root().join("tests/cases");
    let mut dirs = Vec::new();
    for kind in sorted(&base) {
        dirs.extend(sorted(&kind));
    }
    // Keeps the built-in components compiled while cases come and go.
    crate::support::defaults();
    assert!(dirs.len() > 50, "tests/cases has only {} cases: is this the right directory?", dirs.len());
    dirs.into_iter()
        .map(|dir| {
            let name = dir.strip_prefix(&base).unwrap().display().to_string();
            Trial::test(format!("case {name}"), move || run(&dir).map_err(Into::into))
        })
        .collect()
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

fn runner() -> &'static Runner {
    static RUNNER: OnceLock<Runner> = OnceLock::new();
    RUNNER.get_or_init(|| Runner { kinds: Kinds::new().unwrap(), update: std::env::var_os("WEIR_BLESS").is_some() })
}

fn run(dir: &Path) -> Result<(), String> {
    let path = dir.join("case.yaml");
    let text = fs::read_to_string(&path).map_err(|error| format!("case.yaml: {error}"))?;
    let mut cases = suite::read(&path).map_err(|error| error.message)?;
    // Ten times the operator's limit unless the case is about it: a busy machine decides no case.
    if !text.contains("timeoutMs:") && !text.contains("limits:") {
        for case in &mut cases {
            case.limits = Limits::new(Duration::from_secs(2), case.limits.memory()).unwrap();
        }
    }
    let guests = root().join("target/guests");
    let components =
        Components::read(&cases, Some(&guests), &mut |name| panic!("{name}: a case fetches nothing")).map_err(|error| error.message)?;
    let mut stock = Stock::new(host(), &components);
    let ran: Vec<Ran> = cases.iter().map(|case| runner().run(case, &mut stock)).collect();
    let misses = ran.iter().filter(|ran| ran.status != Status::Passed).flat_map(|ran| &ran.misses);
    let messages: Vec<String> = misses.map(|miss| format!("step {:?}: {}", miss.step, miss.message)).collect();
    if messages.is_empty() { Ok(()) } else { Err(messages.join("\n")) }
}
