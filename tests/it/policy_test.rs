//! `weir policy new`, `run`, `test`, `bench` and `diff`, as their users have them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::{
    hostile::GUESTS,
    policy_cli::policy_in,
    registry::Scratch,
    support::{guest, root, test},
};

/// A planted fault: the default policy, a text of its component, and the text of equal length that takes its place.
const FAULTS: [(&str, &str, &str); 10] = [
    ("konnect-env", "KONG_ROLE", "KONG_ROLF"),
    ("konnect-env", "data_plane", "data_plant"),
    ("konnect-env", "KONG_CLUSTER_SERVER_NAME", "KONG_CLUSTER_SERVER_MANE"),
    ("konnect-env", "KONG_INCREMENTAL_SYNC", "KONG_INCREMENTAL_SINK"),
    ("konnect-env", "/status/ready", "/status/reedy"),
    ("konnect-env", "MissingEndpoint", "MissingEndpaint"),
    ("conflict-resolution", "KONG_PLUGINS", "KONG_PLUGANS"),
    ("conflict-resolution", "KONG_LUA_PACKAGE_PATH", "KONG_LUA_PACKAGE_BATH"),
    ("plugin-packaging", "handler.lua", "handlel.lua"),
    ("plugin-packaging", "MissingFiles", "MissingTiles"),
];

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests = vec![
        test("policy test the suites of the default policies", defaults),
        test("policy test runs the project's own case directories", case_directories),
        test("policy test of nothing is an error", nothing),
        test("policy test says which field differs", differs),
        test("policy test has machine-readable reports", reports),
        test("policy test writes snapshots and then holds them", snapshots),
        test("policy test a suite with a mistake runs nothing", mistakes),
        test("policy test shards have every case once", shards),
        test("policy run says what it answers and what that costs", run_one),
        test("policy run takes a ReconcilePolicy", run_manifest),
        test("policy bench holds figures against limits", bench),
        test("policy diff names the fields", diff),
        test("policy new builds, tests and is taken", new_project),
        test("explain knows a code and the near of an unknown one", explain),
    ];
    tests.extend(
        FAULTS.map(|(policy, from, to)| test(format!("policy test catches {from} turned into {to}"), move || fault(policy, from, to))),
    );
    tests
        .extend(GUESTS.map(|(name, reason, _)| test(format!("policy test and run end {name} in {reason}"), move || hostile(name, reason))));
    tests
}

fn weir(args: &[&str]) -> Output {
    policy_in(&[("WEIR_CACHE_DIR", "")], args)
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command prints that ends so.
fn ends(code: i32, args: &[&str]) -> String {
    let output = weir(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", out(&output), String::from_utf8_lossy(&output.stderr));
    out(&output)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn guests() -> String {
    text(&root().join("target/guests"))
}

fn suites() -> String {
    text(&root().join("guest-plugins"))
}

fn defaults() {
    let said = ends(0, &["test", &suites(), "--components", &guests(), "-v"]);
    assert!(said.contains("ok    ") && said.contains("a policy that fails keeps the last answer"), "{said}");
}

fn case_directories() {
    let json = ends(0, &["test", &text(&root().join("tests/cases/konnect-env")), "--components", &guests(), "-o", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(value["passed"].as_u64().unwrap() > 20, "{value}");
}

fn nothing() {
    let scratch = Scratch::new();
    let output = weir(&["test", &text(&scratch.0)]);
    assert_eq!(output.status.code(), Some(10));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No tests found"));
    ends(10, &["test", &suites(), "--components", &guests(), "--run", "no case has this name"]);
}

/// A suite with one case about the built-in konnect-env policy.
fn suite(scratch: &Scratch, expect: &str) -> PathBuf {
    let path = scratch.0.join("a.test.yaml");
    let question = fs::read_to_string(root().join("tests/cases/konnect-env/control-plane/input/input.yaml")).unwrap();
    fs::write(scratch.0.join("question.yaml"), question).unwrap();
    let head = "apiVersion: test.weir.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: a}\nslot: konnect-env\nlimits: {timeout: 2s}\ngiven: {inputFile: question.yaml}\n";
    fs::write(&path, format!("{head}cases:\n- name: it answers\n  expect: {expect}\n")).unwrap();
    path
}

fn differs() {
    let scratch = Scratch::new();
    let path = suite(&scratch, "{answer: {env: [{name: KONG_ROLE, value: control_plane}]}}");
    let said = ends(1, &["test", &text(&path)]);
    assert!(said.contains("answer: env[name=KONG_ROLE].value: expected \"control_plane\", found \"data_plane\""), "{said}");
    assert!(said.contains("0 passed, 1 failed"), "{said}");
}

fn reports() {
    let scratch = Scratch::new();
    let path = suite(&scratch, "{code: None, messages: ['<&>']}");
    let file = |form: &str| format!("{form}={}", text(&scratch.0.join(form)));
    let (junit, tap, json) = (file("junit"), file("tap"), file("json"));
    ends(1, &["test", &text(&path), "--report", &junit, "--report", &tap, "--report", &json]);
    let read = |form: &str| fs::read_to_string(scratch.0.join(form)).unwrap();
    let value: Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(value["cases"][0]["status"], "failed");
    assert!(read("tap").starts_with("TAP version 14\n1..1\nnot ok 1 - "));
    assert!(read("junit").contains("failures=\"1\" errors=\"0\""));
    // Readers of somebody else's making.
    let python =
        "import sys, xml.etree.ElementTree as e; t = e.parse(sys.argv[1]).getroot(); print(t.tag, t.attrib['failures'], t[0][0][0].tag)";
    match Command::new("python3").args(["-c", python]).arg(scratch.0.join("junit")).output() {
        Ok(output) => assert_eq!(out(&output).trim(), "testsuites 1 failure"),
        Err(error) => println!("JUnit is not read by another parser: no python3 ({error})"),
    }
    let perl = "use TAP::Parser; my $p = TAP::Parser->new({ source => $ARGV[0] }); $p->run; \
                printf \"%d planned, %d run, %d failed, %d problems\\n\", $p->tests_planned, $p->tests_run, scalar $p->failed, scalar $p->parse_errors;";
    // It knows 13, whose lines and diagnostics are the same, and takes files with the usual ending.
    fs::write(scratch.0.join("report.tap"), read("tap").replacen("TAP version 14", "TAP version 13", 1)).unwrap();
    match Command::new("perl").args(["-MTAP::Parser", "-e", perl]).arg(scratch.0.join("report.tap")).output() {
        Ok(output) if output.status.success() => assert_eq!(out(&output).trim(), "1 planned, 1 run, 1 failed, 0 problems"),
        Ok(output) => println!("TAP is not read by another parser: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("TAP is not read by another parser: no perl ({error})"),
    }
    let schema: Value = serde_json::from_str(&fs::read_to_string(root().join("docs/schema/policytest-report-v1.json")).unwrap()).unwrap();
    let required = schema["required"].as_array().unwrap();
    assert!(required.iter().all(|field| value.get(field.as_str().unwrap()).is_some()), "{value}");
}

fn snapshots() {
    let scratch = Scratch::new();
    let path = text(&suite(&scratch, "{snapshot: true}"));
    assert!(ends(1, &["test", &path]).contains("is not there: write it with -u"));
    assert!(ends(0, &["test", &path, "-u"]).contains("wrote "));
    ends(0, &["test", &path]);
    let folder = scratch.0.join("snapshots/a.test");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let changed = fs::read_to_string(&file).unwrap().replace("data_plane", "other");
    fs::write(&file, changed).unwrap();
    assert!(ends(1, &["test", &path]).contains("-    value: other\n"), "the line that differs is shown");
}

fn mistakes() {
    let scratch = Scratch::new();
    suite(&scratch, "{}");
    fs::write(
        scratch.0.join("b.test.yaml"),
        "kind: PolicyTest\napiVersion: test.weir.dev/v1alpha1\nmetadata: {name: b}\nexpect: {enviroment: {}}\n",
    )
    .unwrap();
    let output = weir(&["test", &text(&scratch.0)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("b.test.yaml") && said.contains("enviroment"), "{said}");
    assert!(out(&output).is_empty(), "nothing ran");
}

fn shards() {
    let ids = |args: &[&str]| -> Vec<String> {
        let json = ends(0, &[&["test", &suites(), "--components", &guests(), "-o", "json"], args].concat());
        let value: Value = serde_json::from_str(&json).unwrap();
        value["cases"].as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut parts = [ids(&["--shard", "1/2"]), ids(&["--shard", "2/2", "--jobs", "1"])].concat();
    let mut all = ids(&[]);
    parts.sort();
    all.sort();
    assert_eq!(parts, all);
}

fn question() -> String {
    text(&root().join("tests/cases/konnect-env/control-plane/input/input.yaml"))
}

fn wasm(name: &str) -> String {
    text(&guest(name))
}

fn run_one() {
    let json = ends(0, &["run", &wasm("konnect-env"), "--input", &question(), "--timeout", "2s", "-o", "json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    let call = &value["calls"][0];
    assert_eq!((&call["outcome"], &value["memoryLimitBytes"]), (&"Answered".into(), &(32 << 20).into()));
    assert!(call["peakMemoryBytes"].as_u64().unwrap() > 1 << 16 && call["timeUs"].as_u64().unwrap() > 0, "{call}");
    let examples = text(&root().join("examples/konnect-hybrid"));
    let said = ends(0, &["run", &wasm("konnect-env"), "--input", &examples, "--timeout", "2s"]);
    assert!(said.contains("DataPlane gateways/edge") && said.contains("KONG_ROLE"), "{said}");
    ends(2, &["run", &wasm("plugin-packaging"), "--input", &examples]);
}

fn run_manifest() {
    let scratch = Scratch::new();
    let path = scratch.0.join("policy.yaml");
    let policy = "apiVersion: weir.dev/v1alpha1\nkind: ReconcilePolicy\nmetadata: {name: a, namespace: weir-system}\nspec:\n  slot: KonnectEnv\n  source: {builtin: {}}\n  limits: {timeout: 2s, memory: 16Mi}\n  settings: {vitals: true}\n";
    fs::write(&path, policy).unwrap();
    let value: Value = serde_json::from_str(&ends(0, &["run", &text(&path), "--input", &question(), "-o", "json"])).unwrap();
    assert_eq!((&value["memoryLimitBytes"], &value["timeoutMs"], &value["source"]), (&(16 << 20).into(), &2000.into(), &"builtin".into()));
    assert!(value["calls"][0]["answer"]["env"].to_string().contains("\"KONG_VITALS\",\"value\":\"on\""), "{value}");
    ends(1, &["run", &text(&path), "--input", &question(), "--settings", &text(&bad_settings(&scratch))]);
}

fn bad_settings(scratch: &Scratch) -> PathBuf {
    let path = scratch.0.join("bad.json");
    fs::write(&path, "{\"vital\": true}").unwrap();
    path
}

fn bench() {
    let scratch = Scratch::new();
    let baseline = text(&scratch.0.join("before.json"));
    let base = ["bench", &wasm("konnect-env"), "--input", &question(), "--timeout", "2s", "--samples", "50"].map(str::to_owned);
    let base: Vec<&str> = base.iter().map(String::as_str).collect();
    let json = ends(0, &[&base[..], &["-o", "json"]].concat());
    let value: Value = serde_json::from_str(&json).unwrap();
    let figure = |name: &str| value["figures"][name].as_u64().unwrap();
    assert!(
        figure("coldLoadUs") > figure("cachedLoadUs") && figure("callP99Us") >= figure("callP50Us") && figure("memoryBytes") > 0,
        "{value}"
    );
    fs::write(&baseline, json).unwrap();
    ends(0, &[&base[..], &["--baseline", &baseline, "--fail-if", "memory>1%", "--fail-if", "size>1Mi"]].concat());
    ends(1, &[&base[..], &["--fail-if", "memory>1Ki"]].concat());
    ends(2, &[&base[..], &["--fail-if", "p99>20%"]].concat());
}

fn diff() {
    let (old, new) = (wasm("konnect-env"), wasm("konnect-env-eu-proxy"));
    let examples = text(&root().join("examples/konnect-hybrid"));
    let said = ends(1, &["diff", &old, &new, "--input", &examples, "--timeout", "2s"]);
    assert!(said.contains("env[name=KONG_PROXY_SERVER]: nothing -> ") && said.contains("\nby field\n"), "{said}");
    assert!(!said.contains("weir.dev/applied") && !said.contains("decisions"), "{said}");
    let said = ends(0, &["diff", &old, &old, "--input", &examples, "--timeout", "2s"]);
    assert!(said.starts_with("0 difference(s) in 1 input(s), 1 question(s)"), "{said}");
    ends(2, &["diff", &old, &wasm("plugin-packaging"), "--input", &examples]);
}

/// The suites catch a fault that somebody planted in a default policy.
fn fault(policy: &str, from: &str, to: &str) {
    let scratch = Scratch::new();
    for entry in fs::read_dir(root().join("target/guests")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, scratch.0.join(path.file_name().unwrap())).unwrap();
    }
    let path = scratch.0.join(format!("{policy}.wasm"));
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = bytes.windows(from.len()).enumerate().filter(|(_, text)| *text == from.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "{policy} has no text {from}; plant another fault");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    fs::write(&path, bytes).unwrap();
    let said = ends(1, &["test", &suites(), "--components", &text(&scratch.0)]);
    assert!(said.contains("FAIL ") && !said.contains("ERROR"), "{said}");
}

/// The table that the operator's host is held against holds here, too.
fn hostile(name: &str, reason: &str) {
    let scratch = Scratch::new();
    let path = suite(&scratch, &format!("{{outcome: {reason}}}"));
    let limits = "limits: {timeout: 2s}\n";
    let text_of = fs::read_to_string(&path).unwrap();
    assert!(text_of.contains(limits));
    // The operator's own limits for what ends by them in time; elsewhere a busy machine decides nothing.
    let timeout = if reason == "Deadline" { "200ms" } else { "2s" };
    let limits_and_guest = format!("limits: {{timeout: {timeout}}}\npolicies: {{konnect-env: hostile-{name}}}\n");
    fs::write(&path, text_of.replace(limits, &limits_and_guest)).unwrap();
    ends(0, &["test", &text(&path), "--components", &guests()]);
    let code = match reason {
        "Trap" | "BadOutput" => 3,
        "Deadline" | "Memory" => 4,
        _ => 7,
    };
    ends(code, &["run", &wasm(name), "--slot", "konnect-env", "--input", &question(), "--timeout", timeout]);
}

fn new_project() {
    let target = Command::new("rustc").args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]).output().unwrap();
    if !Path::new(out(&target).trim()).is_dir() {
        println!("no project is built: rustc has no target wasm32-unknown-unknown here");
        return;
    }
    for slot in ["konnect-env", "conflict-resolution", "plugin-packaging"] {
        let scratch = Scratch::new();
        let dir = text(&scratch.0.join("mine"));
        ends(0, &["new", "my-policy", "--slot", slot, "--dir", &dir]);
        ends(2, &["new", "my-policy", "--slot", slot, "--dir", &dir]);
        let built = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--target", "wasm32-unknown-unknown", "--target-dir", "target"])
            .current_dir(&dir)
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        assert!(built.status.success(), "{slot}: {}", String::from_utf8_lossy(&built.stderr));
        let module = format!("{dir}/target/wasm32-unknown-unknown/release/my_policy.wasm");
        let component = format!("{dir}/target/policy.wasm");
        ends(0, &["componentize", &module, "-o", &component]);
        ends(0, &["check", &component, "--slot", slot]);
        let said = ends(0, &["test", &format!("{dir}/suites")]);
        assert!(said.contains(" passed"), "{said}");
    }
}

fn explain() {
    let weir = |code: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(crate::kube::AS_WEIR, "1").args(["explain", code]).output().unwrap()
    };
    let known = weir("deadline");
    assert!(known.status.success() && out(&known).starts_with("Deadline (an end of a policy)"), "{}", out(&known));
    let unknown = weir("Deadlin");
    assert!(unknown.status.code() == Some(2) && String::from_utf8_lossy(&unknown.stderr).contains("Deadline"));
}
