//! Slots over a remote plugin: as a component would, for all that a caller can tell.

use std::{sync::Arc, time::Duration};

use futures::executor::block_on;
use serde_json::{Value, json};
use weir_core::policy::{
    ConflictResolution, Context, KonnectEnv, ObjectHook, PluginPackaging, Policy, PolicyError, Refusal, Severity,
    conflict_resolution as conflicts, konnect_env as env, object_hook as hook, plugin_packaging as packaging,
};
use weir_host::{
    layer::MemoSize,
    remote::{RemoteMemo, RemotePolicy, State},
    wasm::{Limits, LoadError},
};
use weir_remote_plugin::Fault;

use crate::support::{Lab, NAME, until};

fn limits(time: Duration) -> Limits {
    Limits::new(time, 32 << 20).unwrap()
}

async fn konnect(lab: &Lab, settings: Value) -> Result<RemotePolicy<KonnectEnv>, LoadError> {
    RemotePolicy::load(Arc::clone(&lab.plugin), settings, limits(Duration::from_secs(10))).await
}

fn question() -> env::Input {
    env::Input {
        context: Context::default(),
        control_plane_id: "cp".into(),
        cluster_type: env::ClusterType::ControlPlane,
        endpoints: env::Endpoints { control_plane: "cp.example".into(), telemetry: "tp.example".into() },
        region: None,
        certificate: env::Certificate { secret_name: "cert".into(), mount_path: "/cert".into() },
        data_plane_labels: [("a".to_owned(), "b".to_owned())].into(),
        image: "kong:3.9".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_slots_answer_over_the_wire() {
    let lab = Lab::good().await;
    let policy = konnect(&lab, json!({"prefix": "MY_"})).await.unwrap();
    let answer = policy.evaluate(&question()).await.unwrap();
    assert_eq!((answer.env[0].name.as_str(), answer.env[0].value.as_str()), ("MY_CLUSTER_CONTROL_PLANE", "cp.example"));
    assert_eq!(answer.findings[0].severity, Severity::Info, "an unknown severity is the gentlest");
    assert_eq!(answer.findings[0].message, "cp");
    assert_eq!(policy.identity().source, format!("remote:{NAME}"));
    assert_eq!(policy.identity().digest, lab.plugin.metadata().unwrap().digest());

    let slot =
        RemotePolicy::<ConflictResolution>::load(Arc::clone(&lab.plugin), Value::Null, limits(Duration::from_secs(10))).await.unwrap();
    let claim = |who: &str, value| conflicts::Claim { who: who.into(), since: None, origin: conflicts::Origin::User, value };
    let claims = vec![claim("a", conflicts::ClaimValue::Text("1".into())), claim("b", conflicts::ClaimValue::Object("{}".into()))];
    let conflict = conflicts::Conflict { kind: conflicts::SubjectKind::EnvVar, subject: "X".into(), claims };
    let answer =
        slot.evaluate(&conflicts::Input { context: Context::default(), conflicts: vec![conflict.clone(), conflict] }).await.unwrap();
    assert_eq!(answer.resolutions.iter().map(|r| &r.verdict).collect::<Vec<_>>(), [&conflicts::Verdict::Keep(0); 2]);

    let slot = RemotePolicy::<PluginPackaging>::load(Arc::clone(&lab.plugin), Value::Null, limits(Duration::from_secs(10))).await.unwrap();
    let file = |path: &str| packaging::File { path: path.into(), size: 1, digest: format!("sha256:{}", "0".repeat(64)), text: None };
    let input = packaging::Input {
        context: Context::default(),
        reference: "r".into(),
        digest: "d".into(),
        annotations: [].into(),
        signers: Vec::new(),
        files: vec![file("handler.lua"), file("schema.lua")],
        bundled: Vec::new(),
    };
    assert_eq!(slot.evaluate(&input).await.unwrap().plugins[0].placements.len(), 2);
}

#[test]
fn a_caller_without_a_runtime_gets_an_answer_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (lab, policy) = runtime.block_on(async {
        let lab = Lab::good().await;
        let policy = konnect(&lab, Value::Null).await.unwrap();
        (lab, policy)
    });
    assert!(block_on(policy.evaluate(&question())).is_ok());
    drop(lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_by_schema_and_by_the_plugin() {
    let lab = Lab::good().await;
    for (settings, code) in [(json!({"prefix": 7}), "SettingsSchema"), (json!({"prefix": "forbidden"}), "PrefixForbidden")] {
        match konnect(&lab, settings).await {
            Err(LoadError::Settings(findings)) => assert_eq!(findings[0].code, code),
            other => panic!("{code}: {other:?}"),
        }
    }
    let policy = konnect(&lab, json!({"refuse": true})).await.unwrap();
    let refusal = Refusal { code: "NotToday".into(), message: "come back tomorrow".into() };
    assert_eq!(policy.evaluate(&question()).await, Err(PolicyError::Refused(refusal)));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_those_of_a_policy() {
    let lab = Lab::good().await;
    let policy = konnect(&lab, Value::Null).await.unwrap();
    for (fault, reason) in [
        (Fault::Panic, "Trap"),
        (Fault::Invalid, "Trap"),
        (Fault::Empty, "BadOutput"),
        (Fault::Huge, "Memory"),
        (Fault::NotYet, "Unavailable"),
        (Fault::Unimplemented, "Incompatible"),
        (Fault::Unavailable, "Unavailable"),
    ] {
        lab.server.handle().set(|b| b.fault = fault);
        let error = policy.evaluate(&question()).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{fault:?}: {error}");
        assert!(!error.to_string().contains("goroutine"), "{error}");
    }
    lab.server.handle().set(|b| b.fault = Fault::None);
    until(&lab.plugin, |status| status.state == State::Ready).await;
    policy.evaluate(&question()).await.unwrap();
    let short: RemotePolicy<KonnectEnv> =
        RemotePolicy::load(Arc::clone(&lab.plugin), Value::Null, limits(Duration::from_millis(100))).await.unwrap();
    lab.server.handle().set(|b| b.fault = Fault::Hang);
    assert_eq!(short.evaluate(&question()).await, Err(PolicyError::Deadline { limit_ms: 100 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_not_advertised_is_never_called() {
    let lab = Lab::with(
        {
            let mut behavior = weir_remote_plugin::Behavior::good(NAME);
            behavior.slots = vec!["plugin-packaging".into()];
            behavior
        },
        crate::support::tuning(),
        |_| {},
    )
    .await;
    let error = konnect(&lab, Value::Null).await.unwrap_err();
    assert!(matches!(&error, LoadError::Policy(PolicyError::Incompatible(text)) if text.contains("weir.dev/slot.konnect-env")), "{error}");
    assert_eq!(lab.server.handle().calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memo_is_dropped_when_the_plugin_is_another_one() {
    let mut lab = Lab::good().await;
    let policy = Arc::new(konnect(&lab, Value::Null).await.unwrap());
    let memo = RemoteMemo::new(&policy, Arc::clone(&policy) as Arc<dyn Policy<KonnectEnv>>, MemoSize::default());
    for _ in 0..3 {
        memo.evaluate(&question()).await.unwrap();
    }
    assert_eq!(lab.server.handle().calls(), 1);
    let (address, files) = (lab.server.address(), lab.both.files());
    drop(std::mem::replace(&mut lab.server, crate::support::serve(files.clone(), weir_remote_plugin::Behavior::good(NAME)).await));
    let mut behavior = weir_remote_plugin::Behavior::good(NAME);
    behavior.version = "2.0.0".into();
    let _server = weir_remote_plugin::start(weir_remote_plugin::Config { listen: address, files, behavior }).await.unwrap();
    until(&lab.plugin, |status| status.state == State::Ready && status.metadata.as_ref().is_some_and(|m| m.version == "2.0.0")).await;
    let answer = memo.evaluate(&question()).await.unwrap();
    assert_eq!(answer.env[1].value, "2.0.0");
}

/// Not a benchmark: it holds that the pool does not cost a multiple of the call.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_answers_come_over_one_connection() {
    let lab = Lab::good().await;
    let policy = konnect(&lab, Value::Null).await.unwrap();
    for _ in 0..500 {
        policy.evaluate(&question()).await.unwrap();
    }
    assert_eq!((lab.server.handle().calls(), lab.server.connections()), (500, 1));
}

fn hooked(api_version: &str, object: Value) -> hook::Input {
    let kind = object["kind"].as_str().unwrap().to_owned();
    hook::Input {
        context: Context::default(),
        operation: hook::Operation::Patch,
        api_version: api_version.into(),
        kind,
        object: object.to_string(),
        owner: r#"{"apiVersion":"gateway-operator.konghq.com/v1beta1","kind":"DataPlane"}"#.into(),
        paths: vec!["/metadata/labels/*".into()],
    }
}

fn deployment() -> Value {
    let pod = json!({"metadata": {"labels": {}}, "spec": {"containers": [{"name": "proxy"}]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {}, "annotations": {}},
        "spec": {"selector": {}, "template": pod},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lifecycle_service_is_a_hook_for_the_kinds_that_it_wants() {
    let lab = Lab::good().await;
    let load = |settings| RemotePolicy::<ObjectHook>::load(Arc::clone(&lab.plugin), settings, limits(Duration::from_secs(10)));
    let policy = load(Value::Null).await.unwrap();
    let input = hooked("apps/v1", deployment());
    let answer = policy.evaluate(&input).await.unwrap();
    let labels = input.patched(&answer.patch).unwrap().meta().labels.clone().unwrap();
    assert_eq!(labels.get("touched-by").map(String::as_str), Some(NAME));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {}, "annotations": {}}});
    assert_eq!(policy.evaluate(&hooked("v1", service)).await.unwrap().patch, "", "it does not want Services");
    let mut forbidden = hooked("apps/v1", deployment());
    forbidden.paths.clear();
    match policy.evaluate(&forbidden).await {
        Err(PolicyError::BadOutput(why)) => assert!(why.contains("path /metadata/labels/touched-by"), "{why}"),
        other => panic!("a path that is not allowed: {other:?}"),
    }
    match load(json!({"a": 1})).await {
        Err(LoadError::Settings(findings)) => assert!(!findings.is_empty()),
        other => panic!("a plugin of CNPG-I takes no settings: {other:?}"),
    }
}
