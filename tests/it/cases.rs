//! A directory is a case: `tests/cases/<kind>/<name>/{case.yaml, input/, observed/, expected.yaml}`, and the artifacts that it names.
//!
//! `case.yaml` (kind PolicyTest) says what the case is for and asserts it; `expected.yaml` is the whole output, written by
//! `cargo xtask test --bless` and read by a person in review. A digest of a guest never stands in a case: it is replaced by its name.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_cli::{
    args::{self, Output},
    exit::Exit,
    plan,
};
use weir_core::{
    live,
    policy::{ConflictResolution, KonnectEnv, PluginPackaging, Policy, PolicyError, Slot, SlotName},
};
use weir_host::wasm::{Builtin, Limits, WasmSlot};

use crate::support::{guest, host, root};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    #[serde(rename = "apiVersion")]
    _api_version: ApiVersion,
    #[serde(rename = "kind")]
    _kind: Kind,
    #[serde(rename = "metadata")]
    _metadata: Metadata,
    /// Components by slot, as names of guests; absent slots have their built-in policy.
    #[serde(default)]
    policies: BTreeMap<SlotName, String>,
    #[serde(default)]
    settings: BTreeMap<SlotName, Value>,
    /// Time per call, milliseconds. Ten times the operator's limit unless the case is about it: a busy machine decides no case.
    timeout_ms: Option<u64>,
    /// A question to one slot instead of manifests: `input/input.json` is the slot's input.
    slot: Option<SlotName>,
    #[serde(default)]
    given: Given,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
enum ApiVersion {
    #[serde(rename = "test.weir.dev/v1alpha1")]
    V1alpha1,
}

#[derive(Debug, Deserialize)]
enum Kind {
    PolicyTest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    #[serde(rename = "name")]
    _name: String,
    /// Why the case is there.
    #[serde(rename = "description")]
    _description: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Given {
    now: Option<String>,
    validate_images: Option<bool>,
    /// What `spec.image` of installations leads to: by reference, paths in the case's directory.
    #[serde(default)]
    artifacts: BTreeMap<String, PathBuf>,
    #[serde(default)]
    allow_cross_namespace_plugins: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    exit: u8,
    /// Slot cases: `accepted`, or a reason such as Refused or Trap.
    outcome: Option<String>,
    /// Objects that must be written: matched by kind and name, then covered by `has` and without the paths of `lacks`.
    #[serde(default)]
    objects: Vec<ExpectObject>,
    /// Kinds of which nothing is written.
    #[serde(default)]
    none: Vec<String>,
    #[serde(default)]
    conditions: Vec<ExpectCondition>,
    /// Codes of findings that must be there.
    #[serde(default)]
    findings: Vec<String>,
    /// Texts that must occur in what is said about the manifests (findings and conditions).
    #[serde(default)]
    messages: Vec<String>,
    #[serde(default)]
    deletions: Vec<String>,
    /// Children of Kong's operator that are taken over.
    #[serde(default)]
    takeovers: Vec<String>,
    /// Reasons of events that must be there.
    #[serde(default)]
    events: Vec<String>,
    /// Environment of the proxy container: a value, or null for "is not there".
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
    /// A part of a slot's answer.
    answer: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectObject {
    kind: String,
    name: Option<String>,
    #[serde(default)]
    has: Value,
    #[serde(default)]
    lacks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectCondition {
    #[serde(rename = "type")]
    type_: String,
    /// True, False or Absent.
    status: String,
    reason: Option<String>,
    message: Option<String>,
    /// Name of the DataPlane or installation; the first one when absent.
    object: Option<String>,
}

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

fn run(dir: &Path) -> Result<(), String> {
    let text = fs::read_to_string(dir.join("case.yaml")).map_err(|e| format!("case.yaml: {e}"))?;
    let case: Value = serde_saphyr::from_str(&text).map_err(|e| format!("case.yaml: {e}"))?;
    let case: Case = serde_json::from_value(case).map_err(|e| format!("case.yaml: {e}"))?;
    let mut failures = Vec::new();
    let output = match case.slot {
        None => manifests(dir, &case, &mut failures)?,
        Some(SlotName::KonnectEnv) => question::<KonnectEnv>(dir, &case, &mut failures)?,
        Some(SlotName::ConflictResolution) => question::<ConflictResolution>(dir, &case, &mut failures)?,
        Some(SlotName::PluginPackaging) => question::<PluginPackaging>(dir, &case, &mut failures)?,
    };
    snapshot(dir, &output, &mut failures);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn limits(case: &Case) -> Limits {
    let timeout = std::time::Duration::from_millis(case.timeout_ms.unwrap_or(2_000));
    Limits::new(timeout, Limits::default().memory()).unwrap()
}

fn plan_args(dir: &Path, case: &Case) -> args::Plan {
    use clap::Parser;
    let observed = dir.join("observed");
    let mut line = vec![
        "weir".into(),
        "plan".into(),
        "--quiet".into(),
        "--cache-dir".into(),
        String::new(),
        "-f".into(),
        dir.join("input").display().to_string(),
    ];
    if observed.is_dir() {
        line.extend(["--observed".into(), observed.display().to_string()]);
    }
    if let Some(now) = &case.given.now {
        line.extend(["--now".into(), now.clone()]);
    }
    if let Some(validate) = case.given.validate_images {
        line.extend(["--validate-images".into(), validate.to_string()]);
    }
    for (reference, path) in &case.given.artifacts {
        line.extend(["--artifact".into(), format!("{reference}={}", dir.join(path).display())]);
    }
    if case.given.allow_cross_namespace_plugins {
        line.push("--allow-cross-namespace-plugins".into());
    }
    let args::Command::Plan(args) = args::Cli::try_parse_from(line).unwrap().command else { panic!("not a plan") };
    args::Plan { output: Output::Json, ..*args }
}

fn manifests(dir: &Path, case: &Case, failures: &mut Vec<String>) -> Result<Value, String> {
    let args = plan_args(dir, case);
    let files: Vec<(SlotName, PathBuf)> = case.policies.iter().map(|(slot, name)| (*slot, guest(name))).collect();
    // Settings stand in the case; the command line takes files.
    let scratch = std::env::temp_dir().join(format!("weir-case-{}-{}", std::process::id(), dir.display().to_string().replace('/', "-")));
    let settings: Vec<(SlotName, PathBuf)> = case
        .settings
        .iter()
        .map(|(slot, value)| {
            fs::create_dir_all(&scratch).unwrap();
            let path = scratch.join(format!("{slot}.json"));
            fs::write(&path, value.to_string()).unwrap();
            (*slot, path)
        })
        .collect();
    let loaded = plan::policies::load(host(), &files, &settings, limits(case)).map_err(|e| format!("policies: {e:#}"));
    let _ = fs::remove_dir_all(&scratch);
    let loaded = loaded?;
    let report = plan::plan(&args, &loaded.policies).map_err(|e| format!("plan: {e:#}"))?;
    let exit = loaded.problems.iter().map(|p| p.exit).fold(report.exit(), Exit::max);
    let output: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    check_manifests(&case.expect, exit.number(), &output, failures);
    Ok(without_digests(output, &loaded.policies))
}

/// Replaces digests of components by the source's name, so that a rebuilt guest changes no case.
fn without_digests(output: Value, policies: &weir_core::policy::Policies) -> Value {
    let mut text = output.to_string();
    for identity in [policies.konnect_env.identity(), policies.conflict_resolution.identity(), policies.plugin_packaging.identity()] {
        text = text.replace(&identity.digest, &format!("sha256:<{}>", identity.source));
    }
    let mut value: Value = serde_json::from_str(&text).unwrap();
    // The hash of what is sent covers the digest inside the record of decisions.
    strip_hashes(&mut value);
    value
}

fn strip_hashes(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                if key == weir_api::keys::APPLIED {
                    *inner = json!("<hash>");
                } else {
                    strip_hashes(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_hashes),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_manifests(expect: &Expect, exit: u8, output: &Value, failures: &mut Vec<String>) {
    if exit != expect.exit {
        failures.push(format!("exit {exit}, expected {}; findings: {}", expect.exit, output["findings"]));
    }
    let objects = output["objects"].as_array().unwrap();
    for wanted in &expect.objects {
        let found = objects
            .iter()
            .find(|o| o["kind"] == wanted.kind.as_str() && wanted.name.as_ref().is_none_or(|n| o["metadata"]["name"] == n.as_str()));
        let Some(found) = found else {
            failures.push(format!("no object {} {:?} is written", wanted.kind, wanted.name));
            continue;
        };
        if !wanted.has.is_null() && !live::covers(found, &wanted.has) {
            failures.push(format!("{} does not have {}\nbut is {found:#}", wanted.kind, wanted.has));
        }
        for path in wanted.lacks.iter().filter(|path| found.pointer(path).is_some()) {
            failures.push(format!("{} has {path}: {}", wanted.kind, found.pointer(path).unwrap()));
        }
    }
    for kind in expect.none.iter().filter(|kind| objects.iter().any(|o| o["kind"] == kind.as_str())) {
        failures.push(format!("an object of kind {kind} is written"));
    }
    for wanted in &expect.conditions {
        check_condition(wanted, output, failures);
    }
    let codes: Vec<&str> = output["findings"].as_array().unwrap().iter().filter_map(|f| f["code"].as_str()).collect();
    for code in expect.findings.iter().filter(|code| !codes.contains(&code.as_str())) {
        failures.push(format!("no finding {code}; there are {codes:?}"));
    }
    let said = format!("{} {}", output["findings"], output["statuses"]).replace("\\\"", "\"");
    for message in expect.messages.iter().filter(|m| !said.contains(m.as_str())) {
        failures.push(format!("nothing says {message:?}: {said}"));
    }
    for (list, wanted) in [("deletions", &expect.deletions), ("takeovers", &expect.takeovers)] {
        let found: Vec<String> = output[list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|d| format!("{} {}", d["kind"].as_str().unwrap(), d["name"].as_str().unwrap()))
            .collect();
        if found != *wanted {
            failures.push(format!("{list} {found:?}, expected {wanted:?}"));
        }
    }
    let reasons: Vec<&str> = output["events"].as_array().unwrap().iter().filter_map(|e| e["reason"].as_str()).collect();
    for reason in expect.events.iter().filter(|reason| !reasons.contains(&reason.as_str())) {
        failures.push(format!("no event {reason}; there are {reasons:?}"));
    }
    check_env(expect, objects, failures);
}

fn check_env(expect: &Expect, objects: &[Value], failures: &mut Vec<String>) {
    if expect.env.is_empty() {
        return;
    }
    let deployment = objects.iter().find(|o| o["kind"] == "Deployment");
    let containers = deployment.and_then(|d| d.pointer("/spec/template/spec/containers")).and_then(Value::as_array);
    let Some(proxy) = containers.and_then(|all| all.iter().find(|c| c["name"] == "proxy")) else {
        failures.push("no Deployment with a proxy container is written".into());
        return;
    };
    for (name, wanted) in &expect.env {
        let found: Vec<&Value> = proxy["env"].as_array().unwrap().iter().filter(|e| e["name"] == name.as_str()).collect();
        let matches = match (wanted, found.as_slice()) {
            (None, []) => true,
            (Some(value), [one]) => one["value"] == value.as_str(),
            _ => false,
        };
        if !matches {
            failures.push(format!("env {name} is {found:?}, expected {wanted:?}"));
        }
    }
}

fn check_condition(wanted: &ExpectCondition, output: &Value, failures: &mut Vec<String>) {
    let statuses = output["statuses"].as_array().unwrap();
    let of = |name: &String| statuses.iter().find(|s| s["metadata"]["name"] == name.as_str());
    let status = wanted.object.as_ref().map_or_else(|| statuses.first(), of);
    let all = status.and_then(|s| s.pointer("/status/conditions")).and_then(Value::as_array).cloned().unwrap_or_default();
    let found = all.iter().find(|c| c["type"] == wanted.type_.as_str());
    let as_wanted = match found {
        None => wanted.status == "Absent",
        Some(found) => {
            found["status"] == wanted.status.as_str()
                && wanted.reason.as_ref().is_none_or(|r| found["reason"] == r.as_str())
                && wanted.message.as_ref().is_none_or(|m| found["message"].as_str().unwrap().contains(m.as_str()))
        }
    };
    if !as_wanted {
        failures.push(format!("condition {} is {found:?}, expected {wanted:?}", wanted.type_));
    }
}

/// A question to one slot, without manifests.
fn question<S>(dir: &Path, case: &Case, failures: &mut Vec<String>) -> Result<Value, String>
where
    S: Slot + Builtin + WasmSlot,
    S::Input: for<'de> Deserialize<'de>,
{
    let text = fs::read_to_string(dir.join("input/input.yaml")).map_err(|e| format!("input/input.yaml: {e}"))?;
    let input: Value = serde_saphyr::from_str(&text).map_err(|e| format!("input/input.yaml: {e}"))?;
    let input: S::Input = serde_json::from_value(input).map_err(|e| format!("input/input.yaml: {e}"))?;
    let settings = case.settings.get(&S::NAME).cloned().unwrap_or(Value::Null);
    let policy = match case.policies.get(&S::NAME) {
        None => host().builtin::<S>(settings, limits(case)),
        Some(name) => host().load::<S>(&fs::read(guest(name)).unwrap(), name.clone(), settings, limits(case)),
    };
    let policy = policy.map_err(|e| format!("load: {e}"))?;
    let answer = futures::executor::block_on(policy.evaluate(&input));
    let outcome = answer.as_ref().map_or_else(PolicyError::reason, |_| "accepted");
    if case.expect.outcome.as_deref() != Some(outcome) {
        failures.push(format!("outcome {outcome}, expected {:?}: {answer:?}", case.expect.outcome));
    }
    let output = match &answer {
        Ok(answer) => json!({"outcome": outcome, "answer": answer}),
        Err(error) => json!({"outcome": outcome, "message": error.to_string()}),
    };
    if let Some(wanted) = &case.expect.answer
        && !live::covers(&output["answer"], wanted)
    {
        failures.push(format!("the answer does not have {wanted}\nbut is {:#}", output["answer"]));
    }
    Ok(output)
}

/// Compares with `expected.yaml`, or writes it.
fn snapshot(dir: &Path, output: &Value, failures: &mut Vec<String>) {
    let path = dir.join("expected.yaml");
    let text = serde_saphyr::to_string(output).unwrap();
    if std::env::var_os("WEIR_BLESS").is_some() && failures.is_empty() {
        fs::write(&path, &text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != text {
        let diff = similar::TextDiff::from_lines(&expected, &text);
        failures.push(format!(
            "expected.yaml differs (bless with `cargo xtask test --bless` and read the change):\n{}",
            diff.unified_diff().context_radius(3)
        ));
    }
}
