//! What the CRD of ReconcilePolicy lets into a cluster and what it refuses, bound by bound and rule by rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use weir_api::reconcile_policy::{Mode, OnFailure, PolicySlot, ReconcilePolicy, Strategy};

use support::{accepted, refused, update};

/// A policy with this spec.
fn policy(spec: Value) -> Value {
    json!({"apiVersion": "weir.dev/v1alpha1", "kind": "ReconcilePolicy", "metadata": {"name": "a", "namespace": "weir-system"}, "spec": spec})
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

#[test]
fn slot_and_source_are_needed() {
    for slot in ["KonnectEnv", "ConflictResolution", "PluginPackaging", "ObjectHook"] {
        accepted(policy(json!({"slot": slot, "source": {"builtin": {}}})));
    }
    refused(policy(json!({"slot": "konnect-env", "source": {"builtin": {}}})), "konnect-env");
    refused(policy(json!({"source": {"builtin": {}}})), "slot");
    refused(policy(json!({"slot": "KonnectEnv"})), "source");
    let mut nothing = policy(json!({}));
    nothing.as_object_mut().unwrap().remove("spec");
    refused(nothing, "spec");
}

#[test]
fn there_is_exactly_one_source() {
    let (artifact, remote, builtin) = (json!({"image": "registry.example/p:1"}), json!({"pluginName": "p"}), json!({}));
    for one in [json!({"oci": artifact}), json!({"remote": remote}), json!({"builtin": builtin})] {
        accepted(source(one));
    }
    for other in [
        json!({}),
        json!({"oci": artifact, "builtin": builtin}),
        json!({"oci": artifact, "remote": remote}),
        json!({"remote": remote, "builtin": builtin}),
        json!({"oci": artifact, "remote": remote, "builtin": builtin}),
    ] {
        refused(source(other), "exactly one of oci, remote and builtin has to be set");
    }
    refused(source(json!({"builtin": {"image": "x"}})), "does not allow");
}

#[test]
fn the_slot_stays() {
    let of = |slot: &str, priority: i32| policy(json!({"slot": slot, "priority": priority, "source": {"builtin": {}}}));
    assert_eq!(update(of("KonnectEnv", 0), of("KonnectEnv", 1)), Vec::<String>::new());
    let complaints = update(of("KonnectEnv", 0), of("PluginPackaging", 0));
    assert!(complaints.len() == 1 && complaints[0].contains("slot cannot change"), "{complaints:?}");
}

#[test]
fn an_artifact_has_a_reference() {
    for image in ["p", &"a".repeat(512)] {
        accepted(oci("image", json!(image)));
    }
    refused(oci("image", json!("")), "image");
    refused(oci("image", json!("a".repeat(513))), "image");
    refused(source(json!({"oci": {}})), "image");
    accepted(oci("insecure", json!(true)));
    refused(oci("insecure", json!("true")), "insecure");
}

#[test]
fn a_range_of_versions_replaces_the_tag_and_no_digest() {
    for range in ["*", "^1.2", &"1".repeat(64)] {
        accepted(oci("semver", json!(range)));
    }
    refused(oci("semver", json!("")), "semver");
    refused(oci("semver", json!("1".repeat(65))), "semver");
    let digest = format!("registry.example/p:1@sha256:{}", "0".repeat(64));
    accepted(source(json!({"oci": {"image": digest}})));
    refused(source(json!({"oci": {"image": digest, "semver": "^1"}})), "semver chooses a tag, so image cannot name a digest");
}

#[test]
fn references_have_names() {
    for field in ["pullSecretRef", "caBundleRef"] {
        for name in ["a", &"a".repeat(253)] {
            accepted(oci(field, json!({"name": name})));
        }
        refused(oci(field, json!({"name": ""})), field);
        refused(oci(field, json!({"name": "a".repeat(254)})), field);
        refused(oci(field, json!({})), "name");
    }
    for key in ["", &"a".repeat(254)] {
        refused(oci("caBundleRef", json!({"name": "a", "key": key})), "key");
    }
    for name in ["", &"a".repeat(254)] {
        refused(source(json!({"remote": {"pluginName": name}})), "pluginName");
    }
    accepted(source(json!({"remote": {"pluginName": "a".repeat(253)}})));
    refused(source(json!({"remote": {}})), "pluginName");
}

#[test]
fn signers_are_named_or_left_out() {
    let verify = |verify: Value| oci("verify", verify);
    let someone = "name at least one verifier in anyOf or allOf, or leave verify out";
    for good in [
        json!({"anyOf": [key("a")]}),
        json!({"allOf": [key("a"), key("b")]}),
        json!({"anyOf": [key("a")], "allOf": [key("b")]}),
        json!({"anyOf": [], "allOf": [key("b")]}),
        json!({"anyOf": vec![key("a"); 8]}),
        json!({"allOf": vec![key("a"); 8]}),
    ] {
        accepted(verify(good));
    }
    for nobody in [json!({}), json!({"anyOf": []}), json!({"allOf": []}), json!({"anyOf": [], "allOf": []})] {
        refused(verify(nobody), someone);
    }
    refused(verify(json!({"anyOf": vec![key("a"); 9]})), "anyOf");
    refused(verify(json!({"allOf": vec![key("a"); 9]})), "allOf");
}

#[test]
fn a_verifier_is_exactly_one() {
    let verifier = |verifier: Value| oci("verify", json!({"anyOf": [verifier]}));
    let keyless = |issuer: &str, subject: &str| json!({"keyless": {"issuer": issuer, "subject": subject}});
    accepted(verifier(keyless("https://issuer.example", "me@example.com")));
    accepted(verifier(keyless(&"i".repeat(512), &"s".repeat(512))));
    let mut both = key("a");
    both["keyless"] = keyless("i", "s")["keyless"].clone();
    for wrong in [json!({}), both] {
        refused(verifier(wrong.clone()), "exactly one of publicKey and keyless has to be set");
        refused(oci("verify", json!({"allOf": [wrong]})), "exactly one of publicKey and keyless has to be set");
    }
    for (issuer, subject, field) in [("", "s", "issuer"), ("i", "", "subject")] {
        refused(verifier(keyless(issuer, subject)), field);
    }
    refused(verifier(keyless(&"i".repeat(513), "s")), "issuer");
    refused(verifier(keyless("i", &"s".repeat(513))), "subject");
    refused(verifier(json!({"keyless": {"issuer": "i"}})), "subject");
    refused(verifier(json!({"publicKey": {}})), "secretRef");
    refused(verifier(key("")), "name");
    refused(verifier(json!({"publicKey": {"secretRef": {"name": "a", "key": ""}}})), "key");
}

#[test]
fn settings_are_an_object_and_stay_as_they_are() {
    let settings = json!({"plugins": {"a": [1, null, {"b": true}]}, "n": 1.5, "": ""});
    assert_eq!(accepted(with("settings", settings.clone()))["spec"]["settings"], settings);
    for other in [json!([]), json!("text"), json!(1)] {
        refused(with("settings", other), "settings");
    }
}

#[test]
fn a_priority_has_a_range() {
    for priority in [-1_000_000, 0, 1_000_000] {
        accepted(with("priority", json!(priority)));
    }
    for priority in [json!(-1_000_001), json!(1_000_001), json!(1.5), json!("1")] {
        refused(with("priority", priority), "priority");
    }
}

#[test]
fn modes_and_failures_are_words() {
    for (field, words) in [("mode", vec!["Enforce", "Shadow"]), ("onFailure", vec!["KeepLast", "Fallback", "Block"])] {
        for word in words {
            accepted(with(field, json!(word)));
            refused(with(field, json!(word.to_lowercase())), field);
        }
    }
    accepted(with("allowOverride", json!(true)));
    refused(with("allowOverride", json!("true")), "allowOverride");
    refused(with("onfailure", json!("Block")), "onfailure");
}

#[test]
fn a_rollout_has_bounds() {
    let rollout = |field: &str, value: Value| with("rollout", json!({field: value}));
    for strategy in ["Automatic", "Manual"] {
        accepted(rollout("strategy", json!(strategy)));
    }
    refused(rollout("strategy", json!("manual")), "strategy");
    for limit in [0, 10] {
        accepted(rollout("historyLimit", json!(limit)));
    }
    for limit in [-1, 11] {
        refused(rollout("historyLimit", json!(limit)), "historyLimit");
    }
    for resync in ["0", "0s", "10s", "60s", "10m", "1h30m", "1h0m5s", "9999h9999m99999s"] {
        accepted(rollout("resync", json!(resync)));
    }
    for resync in ["", "1", "00", "s", "-1s", "1.5h", "1d", "5s3m", "10 s", "10000h", "10000m", "100000s", "60S"] {
        refused(rollout("resync", json!(resync)), "resync");
    }
}

#[test]
fn one_question_may_cost_so_much() {
    let limit = |field: &str, value: &str| with("limits", json!({field: value}));
    for timeout in ["1ms", "200ms", "9999ms", "1s", "9s", "10s"] {
        accepted(limit("timeout", timeout));
    }
    for timeout in ["", "0ms", "0s", "01s", "10000ms", "11s", "20s", "1m", "1", "1.5s", "-1s", "1s "] {
        refused(limit("timeout", timeout), "timeout");
    }
    for memory in ["1Mi", "9Mi", "10Mi", "32Mi", "59Mi", "60Mi", "64Mi"] {
        accepted(limit("memory", memory));
    }
    for memory in ["", "0Mi", "01Mi", "65Mi", "70Mi", "100Mi", "1Ki", "1Gi", "1", "1M", "1.5Mi"] {
        refused(limit("memory", memory), "memory");
    }
}

#[test]
fn targets_are_label_selectors() {
    let all =
        |operator: &str| json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": operator, "values": ["d"]}]});
    for operator in ["In", "NotIn", "Exists", "DoesNotExist"] {
        for field in ["namespaceSelector", "selector"] {
            accepted(with("targets", json!({field: all(operator)})));
            refused(with("targets", json!({field: all(&operator.to_lowercase())})), "operator");
        }
    }
    accepted(with("targets", json!({})));
    refused(with("targets", json!({"selector": {"matchLabel": {}}})), "matchLabel");
    refused(with("targets", json!({"selector": {"matchExpressions": [{"key": "c"}]}})), "operator");
}

#[test]
fn what_is_left_out_has_a_default() {
    let stored = accepted(with("rollout", json!({})));
    let spec = &stored["spec"];
    assert_eq!((&spec["priority"], &spec["mode"], &spec["onFailure"]), (&json!(0), &json!("Enforce"), &json!("KeepLast")));
    assert_eq!(spec["rollout"], json!({"strategy": "Automatic", "historyLimit": 3, "resync": "60s"}));
    assert_eq!(accepted(with("limits", json!({})))["spec"]["limits"], json!({"timeout": "200ms", "memory": "32Mi"}));
    let stored = accepted(oci("caBundleRef", json!({"name": "ca"})));
    assert_eq!(stored["spec"]["source"]["oci"]["caBundleRef"]["key"], "ca.crt");
    let stored = accepted(oci("verify", json!({"allOf": [key("a")]})));
    assert_eq!(stored["spec"]["source"]["oci"]["verify"]["allOf"][0]["publicKey"]["secretRef"]["key"], "cosign.pub");
}

#[test]
fn what_is_accepted_reads_back_the_same() {
    let stored = accepted(policy(json!({
        "slot": "ConflictResolution",
        "source": {"oci": {
            "image": "registry.example/policies/conflicts:1", "semver": "^1.2", "pullSecretRef": {"name": "pull"},
            "caBundleRef": {"name": "ca", "key": "bundle.pem"}, "insecure": true,
            "verify": {"anyOf": [key("a"), {"keyless": {"issuer": "https://issuer.example", "subject": "me@example.com"}}], "allOf": [key("b")]}
        }},
        "settings": {"pluginInstallations": "firstOwner"},
        "targets": {"namespaceSelector": {"matchLabels": {"team": "a"}}, "selector": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}},
        "priority": 7, "allowOverride": true, "mode": "Shadow",
        "rollout": {"strategy": "Manual", "historyLimit": 0, "resync": "0s"},
        "limits": {"timeout": "1s", "memory": "64Mi"}, "onFailure": "Block"
    })));
    let typed: ReconcilePolicy = serde_json::from_value(stored.clone()).unwrap();
    let spec = &typed.spec;
    assert_eq!((spec.slot, spec.mode, spec.on_failure), (PolicySlot::ConflictResolution, Some(Mode::Shadow), Some(OnFailure::Block)));
    assert_eq!(spec.rollout.as_ref().unwrap().strategy, Some(Strategy::Manual));
    assert_eq!(serde_json::to_value(&typed).unwrap(), stored);
}

#[test]
fn a_status_has_bounds() {
    let condition = |number: usize| json!({"type": format!("T{number}"), "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let revision = json!({"layerDigest": "sha256:a", "settingsDigest": "sha256:b", "settings": {"any": {"thing": 1}}});
    let status = |conditions: usize, revisions: usize| {
        let mut object = with("priority", json!(0));
        object["status"] = json!({
            "observedGeneration": 1, "conditions": (0..conditions).map(condition).collect::<Vec<_>>(), "history": vec![revision.clone(); revisions]
        });
        object
    };
    let stored = accepted(status(16, 10));
    assert_eq!(stored["status"]["history"][9]["settings"], json!({"any": {"thing": 1}}));
    refused(status(17, 0), "conditions");
    refused(status(0, 11), "history");
    let mut without = status(1, 1);
    without["status"]["history"][0].as_object_mut().unwrap().remove("layerDigest");
    refused(without, "layerDigest");
}
