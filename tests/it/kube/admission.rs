//! Admission that changes or refuses what the operator sends, in the same request. By policies in CEL: webhooks without a server.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{self, DATA_PLANE, DEPLOYMENT, MUTATING, SERVICE, VALIDATING},
    audit::lines,
    labs::shared,
    ns::{CONVERGED, Ns, READY, SHOWN},
    shape::{env, gateway, holds, image, proxy, same},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("admission changes what is sent", changes),
        shared("admission refuses a child", refuses),
        shared("admission refuses a Service of one that runs", refuses_later),
    ]
}

/// Applies a policy and its binding to the test's namespace. `spec` is what the policy does.
async fn policy(ns: &Ns, kind: &str, resource: &str, spec: Value) {
    let version = MUTATING.api_version;
    let group = if resource == "services" { "" } else { "apps" };
    let mut whole = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name}},
            "resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]
            }]
        }
    });
    super::shape::merge(&mut whole, spec);
    let mut binding = json!({"policyName": ns.name});
    if kind == VALIDATING.kind {
        binding["validationActions"] = json!(["Deny"]);
    }
    for object in [
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": ns.name}, "spec": whole}),
        json!({"apiVersion": version, "kind": format!("{kind}Binding"), "metadata": {"name": ns.name}, "spec": binding}),
    ] {
        api::apply(&ns.client, "", &object, "test", true).await.map_err(String::from).unwrap();
    }
}

async fn no_policy(ns: &Ns, kind: api::Kind) {
    let path = format!("{}/{}", kind.path(""), ns.name);
    api::call(&ns.client, "DELETE", &path, api::JSON, &Value::Null).await.map_err(String::from).unwrap();
}

/// Tries a Deployment (`probe`) without storing it: the server learns of a policy a moment after it was written.
async fn tried(ns: &Ns) -> Result<Value, String> {
    let labels = json!({"app": "probe"});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe", "namespace": ns.name},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "proxy", "image": "probe:1"}]}
        }}
    });
    Ok(api::create(&ns.client, &ns.name, &object, "test", "dryRun=All").await?)
}

/// Wants two of our values otherwise and adds one of its own.
const WISHES: &str = r#"Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
    terminationGracePeriodSeconds: 77,
    containers: [Object.spec.template.spec.containers{name: "proxy", env: [
        Object.spec.template.spec.containers.env{name: "KONG_PROXY_ACCESS_LOG", value: "/dev/null"},
        Object.spec.template.spec.containers.env{name: "INJECTED", value: "1"}
    ]}]
}}}}"#;

async fn changes(ns: Ns) {
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": WISHES}});
    policy(&ns, MUTATING.kind, "deployments", json!({"reinvocationPolicy": "Never", "mutations": [mutation]})).await;
    ns.eventually(CONVERGED, "the policy is in force", async || {
        holds(env(&tried(&ns).await?).contains_key("INJECTED"), || "not yet".into())
    })
    .await;
    let audit = ns.audit().await;
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let changed = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
    assert_eq!(env(&changed)["KONG_PROXY_ACCESS_LOG"], "/dev/null");
    assert_eq!(changed["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 77);
    ns.eventually(CONVERGED, "an event says so", async || {
        let events = ns.list(api::EVENT, "").await?;
        let said = |e: &Value| e["reason"] == "Altered" && e["message"].as_str().is_some_and(|m| m.contains("Deployment dataplane-gw"));
        holds(events.iter().any(said), || format!("{:?}", events.iter().map(|e| e["reason"].clone()).collect::<Vec<_>>()))
    })
    .await;
    let deployments = async || audit.our_writes().await.into_iter().filter(|a| a.resource == "deployments").collect::<Vec<_>>();
    let writes = deployments().await;
    assert!(writes.len() <= 2, "what is changed in the request is the answer, not drift:\n{}", lines(&writes));
    // Later edits go through, each with one write.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "our image, their variable", async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        same("image", proxy(&deployment)["image"].clone(), json!("kong:3.10"))?;
        same("variable", env(&deployment).get("INJECTED").cloned(), Some("1".into()))
    })
    .await;
    ns.ready("gw", READY).await;
    ns.settled().await;
    let all = deployments().await;
    assert!(all.len() <= writes.len() + 2, "{}", lines(&all));
    // The policy goes: nothing happens by itself, and the next write is as sent.
    no_policy(&ns, MUTATING).await;
    ns.eventually(CONVERGED, "the policy is gone", async || holds(env(&tried(&ns).await?).is_empty(), || "not yet".into())).await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.11")).await;
    ns.eventually(CONVERGED, "our image and our values", async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        same("image", proxy(&deployment)["image"].clone(), json!("kong:3.11"))?;
        same("variable", env(&deployment).get("KONG_PROXY_ACCESS_LOG").cloned(), Some("/dev/stdout".into()))?;
        same("grace", deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].clone(), json!(30))
    })
    .await;
}

fn denial(message: &str) -> Value {
    json!({"validations": [{"expression": "false", "message": message}]})
}

async fn refuses(ns: Ns) {
    policy(&ns, VALIDATING.kind, "deployments", denial("no Deployments on Sundays")).await;
    ns.eventually(CONVERGED, "the policy is in force", async || {
        holds(tried(&ns).await.is_err_and(|words| words.contains("Sundays")), || "not yet".into())
    })
    .await;
    ns.apply(&gateway("gw")).await;
    let wanted = ["Ready", "False", "UnableToProvision"];
    ns.says(DATA_PLANE, "gw", wanted, &["Deployment dataplane-gw", "no Deployments on Sundays"], SHOWN).await;
    // Everything else is there, and goes on.
    ns.get(SERVICE, "dataplane-ingress-gw").await.unwrap();
    ns.edit(DATA_PLANE, "gw", super::mistakes::annotated("a")).await;
    super::mistakes::service_has(&ns, "gw", "a").await;
    // It backs off: a server that says no is not asked all the time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let audit = ns.audit().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let writes = audit.our_writes().await;
    assert!(writes.len() <= 10, "{} writes in 10 s:\n{}", writes.len(), lines(&writes));
    no_policy(&ns, VALIDATING).await;
    ns.ready("gw", READY).await;
}

async fn refuses_later(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    policy(&ns, VALIDATING.kind, "services", denial("Services are frozen")).await;
    ns.eventually(CONVERGED, "the policy is in force", async || {
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("{}/dataplane-admin-gw?dryRun=All&fieldManager=test", SERVICE.path(&ns.name));
        let answer = api::call(&ns.client, "PATCH", &path, api::MERGE, &label).await;
        holds(answer.is_err_and(|failure| failure.message.contains("frozen")), || "not yet".into())
    })
    .await;
    ns.edit(DATA_PLANE, "gw", super::mistakes::annotated("a")).await;
    let wanted = ["Ready", "False", "UnableToProvision"];
    ns.says(DATA_PLANE, "gw", wanted, &["Service dataplane-ingress-gw", "Services are frozen"], SHOWN).await;
    let mut edit = image("kong:3.10");
    super::shape::merge(&mut edit, json!({"spec": {"deployment": {"replicas": 2}}}));
    ns.edit(DATA_PLANE, "gw", edit).await;
    super::mistakes::replicas_are(&ns, "gw", 2).await;
    assert_eq!(proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap())["image"], "kong:3.10");
    no_policy(&ns, VALIDATING).await;
    super::mistakes::service_has(&ns, "gw", "a").await;
    ns.ready("gw", READY).await;
}
