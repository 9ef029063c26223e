//! What the API server lets into a ReconcilePolicy, refuses, fills in and keeps.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::POLICY,
    crds::{Row, check, try_create},
    labs::shared,
    ns::Ns,
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("crds sources of a policy", sources),
        shared("crds limits of a policy", limits),
        shared("crds defaults of a policy", defaults),
    ]
}

fn policy(spec: Value) -> Value {
    json!({"apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": "a"}, "spec": spec})
}

/// A policy of the least that is needed, with a field more.
fn with(field: &str, value: Value) -> Value {
    let mut spec = json!({"slot": "KonnectEnv", "source": {"builtin": {}}});
    spec[field] = value;
    policy(spec)
}

fn source(source: Value) -> Value {
    policy(json!({"slot": "KonnectEnv", "source": source}))
}

/// An artifact with a field more.
fn oci(field: &str, value: Value) -> Value {
    let mut oci = json!({"image": "registry.example/p:1"});
    oci[field] = value;
    source(json!({"oci": oci}))
}

fn key(name: &str) -> Value {
    json!({"publicKey": {"secretRef": {"name": name}}})
}

async fn sources(ns: Ns) {
    let (artifact, remote, builtin) = (json!({"image": "registry.example/p:1"}), json!({"pluginName": "p"}), json!({}));
    let keyless = |subject: &str| json!({"keyless": {"issuer": "https://issuer.example", "subject": subject}});
    let mut both = key("a");
    both["keyless"] = keyless("me@example.com")["keyless"].clone();
    let verify = |verify: Value| oci("verify", verify);
    let digest = format!("registry.example/p:1@sha256:{}", "0".repeat(64));
    let (one, one_of) = (Some("exactly one of oci, remote and builtin"), Some("exactly one of publicKey and keyless"));
    let nobody = Some("name at least one verifier");
    let rows: Vec<Row> = vec![
        ("an artifact", source(json!({"oci": artifact})), None),
        ("a remote plugin", source(json!({"remote": remote})), None),
        ("the operator's own", source(json!({"builtin": builtin})), None),
        ("no source", source(json!({})), one),
        ("two sources", source(json!({"oci": artifact, "builtin": builtin})), one),
        ("two other sources", source(json!({"remote": remote, "builtin": builtin})), one),
        ("three sources", source(json!({"oci": artifact, "remote": remote, "builtin": builtin})), one),
        ("a field of the operator's own", source(json!({"builtin": {"image": "x"}})), Some("unknown field")),
        ("no slot", policy(json!({"source": {"builtin": {}}})), Some("slot: Required value")),
        ("a slot of no sort", policy(json!({"slot": "konnect-env", "source": {"builtin": {}}})), Some("Unsupported value")),
        ("no reference", oci("image", json!("")), Some("at least 1")),
        ("a reference of 512", oci("image", json!("a".repeat(512))), None),
        ("a reference of 513", oci("image", json!("a".repeat(513))), Some("512")),
        ("a digest", source(json!({"oci": {"image": digest}})), None),
        ("a range", oci("semver", json!("^1.2")), None),
        ("a range of 65", oci("semver", json!("1".repeat(65))), Some("64")),
        ("a range and a digest", source(json!({"oci": {"image": digest, "semver": "^1"}})), Some("image cannot name a digest")),
        ("a pull Secret without name", oci("pullSecretRef", json!({})), Some("Required value")),
        ("a CA of 254", oci("caBundleRef", json!({"name": "a".repeat(254)})), Some("253")),
        ("a plugin without name", source(json!({"remote": {"pluginName": ""}})), Some("at least 1")),
        ("any of two signers", verify(json!({"anyOf": [key("a"), keyless("me@example.com")]})), None),
        ("both lists of signers", verify(json!({"anyOf": [key("a")], "allOf": [key("b")]})), None),
        ("8 signers", verify(json!({"allOf": vec![key("a"); 8]})), None),
        ("9 signers", verify(json!({"allOf": vec![key("a"); 9]})), Some("at most 8")),
        ("no signer", verify(json!({})), nobody),
        ("empty lists of signers", verify(json!({"anyOf": [], "allOf": []})), nobody),
        ("a signer of no sort", verify(json!({"anyOf": [{}]})), one_of),
        ("a signer of both sorts", verify(json!({"allOf": [both]})), one_of),
        ("a signer without subject", verify(json!({"anyOf": [keyless("")]})), Some("at least 1")),
    ];
    check(&ns, rows).await;

    ns.apply(&with("priority", json!(1))).await;
    let refused = ns.try_edit("test", POLICY, "a", &json!({"spec": {"slot": "PluginPackaging"}})).await.unwrap_err();
    assert!(refused.message.contains("slot cannot change"), "{}", refused.message);
    ns.edit(POLICY, "a", json!({"spec": {"slot": "KonnectEnv", "priority": 2}})).await;
}

async fn limits(ns: Ns) {
    let rollout = |field: &str, value: Value| with("rollout", json!({field: value}));
    let limit = |field: &str, value: &str| with("limits", json!({field: value}));
    let pattern = Some("should match");
    let selector =
        |operator: &str| with("targets", json!({"selector": {"matchExpressions": [{"key": "a", "operator": operator, "values": ["b"]}]}}));
    let rows: Vec<Row> = vec![
        ("the highest priority", with("priority", json!(1_000_000)), None),
        ("a higher one", with("priority", json!(1_000_001)), Some("less than or equal to")),
        ("the lowest priority", with("priority", json!(-1_000_000)), None),
        ("a lower one", with("priority", json!(-1_000_001)), Some("greater than or equal to")),
        ("no history", rollout("historyLimit", json!(0)), None),
        ("the longest history", rollout("historyLimit", json!(10)), None),
        ("a longer one", rollout("historyLimit", json!(11)), Some("less than or equal to")),
        ("less than none", rollout("historyLimit", json!(-1)), Some("greater than or equal to")),
        ("never again", rollout("resync", json!("0s")), None),
        ("hours and minutes", rollout("resync", json!("1h30m")), None),
        ("no duration", rollout("resync", json!("")), Some("at least 1")),
        ("a bare number", rollout("resync", json!("10")), pattern),
        ("days", rollout("resync", json!("1d")), pattern),
        ("a strategy of no sort", rollout("strategy", json!("manual")), Some("Unsupported value")),
        ("1 ms", limit("timeout", "1ms"), None),
        ("9999 ms", limit("timeout", "9999ms"), None),
        ("10 s", limit("timeout", "10s"), None),
        ("11 s", limit("timeout", "11s"), pattern),
        ("no time", limit("timeout", "0ms"), pattern),
        ("1 Mi", limit("memory", "1Mi"), None),
        ("64 Mi", limit("memory", "64Mi"), None),
        ("65 Mi", limit("memory", "65Mi"), pattern),
        ("no memory", limit("memory", "0Mi"), pattern),
        ("a mode of no sort", with("mode", json!("enforce")), Some("Unsupported value")),
        ("a failure of no sort", with("onFailure", json!("Ignore")), Some("Unsupported value")),
        ("settings that are a list", with("settings", json!([])), Some("must be of type object")),
        ("a selector", selector("NotIn"), None),
        ("a selector of no sort", selector("notIn"), Some("Unsupported value")),
        ("an unknown field", with("onfailure", json!("Block")), Some("onfailure")),
    ];
    check(&ns, rows).await;
}

async fn defaults(ns: Ns) {
    let settings = json!({"any": {"thing": [1, {"deep": true}]}, "n": 1.5});
    let mut object = with("settings", settings.clone());
    object["spec"]["rollout"] = json!({});
    object["spec"]["limits"] = json!({});
    let spec = try_create(&ns, &object).await.unwrap()["spec"].clone();
    assert_eq!(spec["settings"], settings, "kept as it is");
    assert_eq!((&spec["priority"], &spec["mode"], &spec["onFailure"]), (&json!(0), &json!("Enforce"), &json!("KeepLast")));
    assert_eq!(spec["rollout"], json!({"strategy": "Automatic", "historyLimit": 3, "resync": "60s"}));
    assert_eq!(spec["limits"], json!({"timeout": "200ms", "memory": "32Mi"}));
    let mut object = oci("caBundleRef", json!({"name": "ca"}));
    object["spec"]["source"]["oci"]["verify"] = json!({"anyOf": [key("a")]});
    let oci = try_create(&ns, &object).await.unwrap()["spec"]["source"]["oci"].clone();
    assert_eq!(
        (&oci["caBundleRef"]["key"], &oci["verify"]["anyOf"][0]["publicKey"]["secretRef"]["key"]),
        (&json!("ca.crt"), &json!("cosign.pub"))
    );
}
