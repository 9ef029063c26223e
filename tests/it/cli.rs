//! The binary itself: exit codes, output, helpful errors.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::support::{guest, root, test};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test("cli konnect-hybrid renders the full environment", example),
        test("cli a policy file changes only what it decides", swapped),
        test("cli standard input and YAML", stdin),
        test("cli exit codes", exit_codes),
        test("cli usage errors say what to do", usage),
        test("cli an artifact that nothing names is warned of", unused),
        test("cli crds are the checked-in ones", crds),
        test("cli completion", completion),
        test("cli unquoted YAML 1.1 boolean is refused with its line", yaml11),
    ]
}

/// This very binary as `weir` ([`crate::kube::as_weir`]): building the real one beside a test run would compile half of the tree again, with other
/// features.
fn weir() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(crate::kube::AS_WEIR, "1");
    command
}

pub(crate) fn run(args: &[&str], stdin: Option<&str>) -> Output {
    let mut command = weir();
    command.args(args).current_dir(root()).env("WEIR_CACHE_DIR", "").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    if let Some(text) = stdin {
        // A command that refuses its arguments reads nothing.
        let _ = pipe.write_all(text.as_bytes());
    }
    drop(pipe);
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn plan(args: &[&str]) -> Value {
    let output = run(&[&["plan", "-o", "json"], args].concat(), None);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn object<'a>(plan: &'a Value, kind: &str) -> &'a Value {
    plan["objects"].as_array().unwrap().iter().find(|o| o["kind"] == kind).unwrap()
}

fn env(plan: &Value) -> std::collections::BTreeMap<String, String> {
    let containers = object(plan, "Deployment").pointer("/spec/template/spec/containers").unwrap();
    let env = containers[0]["env"].as_array().unwrap();
    env.iter().map(|e| (e["name"].as_str().unwrap().into(), e["value"].as_str().unwrap_or_default().into())).collect()
}

fn example() {
    let plan = plan(&["-f", "examples/konnect-hybrid/"]);
    let env = env(&plan);
    let id = "7d7b1a6e-92a5-4f63-bc63-1c9a7a3d2f10";
    let expected = [
        ("KONG_ROLE", "data_plane".to_owned()),
        ("KONG_DATABASE", "off".into()),
        ("KONG_CLUSTER_MTLS", "pki".into()),
        ("KONG_CLUSTER_CONTROL_PLANE", format!("{id}.eu.cp0.konghq.com:443")),
        ("KONG_CLUSTER_SERVER_NAME", format!("{id}.eu.cp0.konghq.com")),
        ("KONG_CLUSTER_TELEMETRY_ENDPOINT", format!("{id}.eu.tp0.konghq.com:443")),
        ("KONG_CLUSTER_TELEMETRY_SERVER_NAME", format!("{id}.eu.tp0.konghq.com")),
        ("KONG_CLUSTER_CERT", "/etc/secrets/kong-cluster-cert/tls.crt".into()),
        ("KONG_CLUSTER_CERT_KEY", "/etc/secrets/kong-cluster-cert/tls.key".into()),
        ("KONG_LUA_SSL_TRUSTED_CERTIFICATE", "system".into()),
        ("KONG_KONNECT_MODE", "on".into()),
        ("KONG_VITALS", "off".into()),
        ("KONG_INCREMENTAL_SYNC", "on".into()),
        ("KONG_CLUSTER_DP_LABELS", "env:staging,team:payments".into()),
        ("KONG_LOG_LEVEL", "debug".into()),
        ("KONG_NGINX_WORKER_PROCESSES", "4".into()),
    ];
    for (name, value) in expected {
        assert_eq!(env.get(name), Some(&value), "{name}");
    }
    let pod = object(&plan, "Deployment").pointer("/spec/template/spec").unwrap();
    assert_eq!(pod["containers"][1]["name"], "access-log-shipper");
    assert_eq!(pod["containers"][1]["args"][0], "--from");
    let asked: Vec<&str> = plan["policies"].as_array().unwrap().iter().map(|p| p["slot"].as_str().unwrap()).collect();
    assert_eq!(asked, ["konnect-env", "conflict-resolution"]);
    assert!(plan["policies"][0]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(plan["policies"][0]["source"], "builtin");
}

fn swapped() {
    let file = format!("konnect-env={}", guest("konnect-env-eu-proxy").display());
    let before = plan(&["-f", "examples/konnect-hybrid/"]);
    let after = plan(&["-f", "examples/konnect-hybrid/", "--policy", &file]);
    let (old, new) = (env(&before), env(&after));
    assert_ne!(old, new, "the second policy decides something else");
    // Everything but the environment, and what is derived from it, is the same.
    let rest = |plan: &Value| {
        let mut plan = plan.clone();
        for object in plan["objects"].as_array_mut().unwrap().iter_mut().filter(|o| o["kind"] == "Deployment") {
            object["spec"]["template"]["spec"]["containers"][0]["env"] = Value::Null;
            object["metadata"]["annotations"] = Value::Null;
        }
        // What the policy says about its own decision is its own too.
        plan["policies"] = Value::Null;
        plan["findings"] = Value::Null;
        plan["events"] = Value::Null;
        plan
    };
    assert_eq!(rest(&before), rest(&after));
    assert_ne!(before["policies"][0]["digest"], after["policies"][0]["digest"]);
}

fn stdin() {
    let manifest = std::fs::read_to_string(root().join("examples/standalone/dataplane.yaml")).unwrap();
    let output = run(&["plan", "-f", "-"], Some(&manifest));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("kind: HorizontalPodAutoscaler") && text.contains("kind: PlanReport"), "{text}");
    assert!(stderr(&output).contains("1 DataPlane(s)"), "{}", stderr(&output));
}

fn exit_codes() {
    let hybrid = ["plan", "-o", "json", "-f", "examples/konnect-hybrid/"];
    for (name, expected) in
        [("trap", 3), ("garbage-output", 3), ("endless-loop", 4), ("memory-grower", 4), ("core-module", 7), ("wrong-world", 7)]
    {
        let policy = format!("konnect-env={}", guest(name).display());
        let output = run(&[&hybrid[..], &["--policy", &policy]].concat(), None);
        assert_eq!(code(&output), expected, "{name}: {}", stderr(&output));
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            plan["objects"].as_array().unwrap().iter().all(|o| o["kind"] != "Deployment"),
            "{name}: a Deployment without Konnect environment"
        );
        assert!(plan["objects"].as_array().unwrap().iter().any(|o| o["kind"] == "Service"), "{name}: everything else proceeds");
    }
    let broken =
        "apiVersion: gateway-operator.konghq.com/v1beta1\nkind: DataPlane\nmetadata: {name: x}\nspec: {deployment: {replicas: many}}\n";
    assert_eq!(code(&run(&["plan", "-f", "-"], Some(broken))), 1);
    assert_eq!(code(&run(&["plan", "-f", "-"], Some("a: [1"))), 2);
}

fn usage() {
    for (args, word) in [
        (vec!["plan"], "--filename"),
        (vec!["plan", "-f", "no-such-dir"], "no-such-dir"),
        (vec!["plan", "-f", "examples", "--policy", "konnect=x"], "konnect-env, conflict-resolution"),
        (vec!["plan", "-f", "examples", "--policy", "konnect-env=missing.wasm"], "missing.wasm"),
        (vec!["plan", "-f", "-"], "no object"),
    ] {
        let output = run(&args, Some(""));
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

fn unused() {
    let case = "tests/cases/plan-plugins/single-at-root";
    let input = format!("{case}/input");
    let [used, unused] = ["myheader", "other"].map(|name| format!("registry.example/plugins/{name}:1.0={case}/artifact"));
    let line = ["plan", "-o", "json", "-f", input.as_str(), "--artifact", used.as_str(), "--artifact", unused.as_str()];
    let output = run(&line, None);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stderr(&output);
    let warning = "warning: --artifact registry.example/plugins/other:1.0: no KongPluginInstallation of the manifests names it in spec.image; they name registry.example/plugins/myheader:1.0\n";
    assert!(said.contains(warning) && !String::from_utf8_lossy(&output.stdout).contains("other:1.0"), "{said}");
    let quiet = run(&[line.as_slice(), &["--quiet"]].concat(), None);
    assert!(code(&quiet) == 0 && !stderr(&quiet).contains("warning"), "{}", stderr(&quiet));
}

fn crds() {
    let output = run(&["crds"], None);
    assert_eq!(code(&output), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(root().join("crds")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let checked_in = std::fs::read_to_string(&file).unwrap();
        let body: String = checked_in.lines().filter(|l| !l.starts_with('#') && *l != "---").map(|l| format!("{l}\n")).collect();
        assert!(text.contains(&body), "{} is not what `weir crds` prints", file.display());
    }
}

fn completion() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completion", shell], None);
        assert_eq!(code(&output), 0, "{shell}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("plan"), "{shell}");
    }
}

fn yaml11() {
    let manifest = "apiVersion: gateway-operator.konghq.com/v1beta1\nkind: DataPlane\nmetadata: {name: x}\nspec:\n  deployment:\n    podTemplateSpec:\n      spec:\n        containers:\n        - name: proxy\n          image: kong:3.9\n          env:\n          - name: KONG_DATABASE\n            value: off\n";
    let output = run(&["plan", "-f", "-"], Some(manifest));
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains(":13") && said.contains("DataPlane default/x") && said.contains("quote it"), "{said}");
}
