//! Other writers of our objects: repaired where it is ours, left alone where it is not, and never a fight.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, EVENT, POD, REPLICA_SET, SERVICE},
    audit::lines,
    labs::shared,
    ns::{CONVERGED, Ns, READY},
    record::Record,
    shape::{condition, env, gateway, holds, image, proxy, same, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("others a forced apply of our fields is repaired", forced),
        shared("others a writer that repeats itself", repeated),
        shared("others foreign labels, annotations and fields stay", foreign),
        shared("others rollout restart is not undone", restarted),
        shared("others a removed field comes back", removed),
        shared("others the status is ours, other conditions stay", status),
        shared("others paused writes nothing", paused),
        shared("others a look on demand is acknowledged", checked),
    ]
}

/// Writes the operator may need for one foreign write of one child: the repair and the statuses around it.
const PER_WRITE: usize = 4;

async fn forced(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let selector = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()["spec"]["selector"].clone();
    let audit = ns.audit().await;
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "dataplane-gw", "labels": {"app": "theirs"}},
        "spec": {"replicas": 5, "selector": selector, "template": {"spec": {"containers": [
            {"name": "proxy", "image": "kong:theirs", "env": [{"name": "KONG_DATABASE", "value": "postgres"}, {"name": "THEIRS", "value": "1"}]}
        ]}}}
    });
    ns.apply_as("intruder", true, &theirs).await.map_err(String::from).unwrap();
    ns.eventually(CONVERGED, "what is ours is ours again", async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        same("replicas", deployment["spec"]["replicas"].clone(), json!(1))?;
        same("label", deployment["metadata"]["labels"]["app"].clone(), json!("gw"))?;
        same("image", proxy(&deployment)["image"].clone(), json!("kong:3.9"))?;
        same("variable", env(&deployment).get("KONG_DATABASE").cloned(), Some("off".into()))
    })
    .await;
    // A list entry that nobody but them set is theirs to keep.
    assert_eq!(env(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()).get("THEIRS").map(String::as_str), Some("1"));
    ns.ready("gw", READY).await;
    ns.always(Duration::from_secs(2), "no second repair", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.9"))
    })
    .await;
    let writes: Vec<_> = audit.our_writes().await.into_iter().filter(|a| a.resource == "deployments").collect();
    assert!((1..=2).contains(&writes.len()), "{}", lines(&writes));
}

/// Stands for a controller that wants one of our values otherwise and never gives up: it is repaired, then less and less often, people are
/// told, and a person's own edit never waits.
async fn repeated(ns: Ns) {
    const TIMES: usize = 10;
    const LONGEST_REST: Duration = Duration::from_secs(60);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let audit = ns.audit().await;
    let fight = async |turn: usize| {
        let vars = json!([{"name": "KONG_PROXY_ACCESS_LOG", "value": format!("/tmp/{turn}")}]);
        let theirs = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "dataplane-gw", "annotations": {"theirs": turn.to_string()}},
            "spec": {"template": {"spec": {"containers": [{"name": "proxy", "env": vars}]}}}
        });
        ns.apply_as("fighter", true, &theirs).await.map_err(String::from).unwrap();
    };
    let repaired = async |turn: usize, limit: Duration| {
        ns.eventually(limit, "the variable is repaired, the annotation stays", async || {
            let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
            same("annotation", deployment["metadata"]["annotations"]["theirs"].clone(), json!(turn.to_string()))?;
            same("variable", env(&deployment).get("KONG_PROXY_ACCESS_LOG").cloned(), Some("/dev/stdout".into()))
        })
        .await;
    };
    for turn in 0..3 {
        fight(turn).await;
        repaired(turn, CONVERGED).await;
    }
    for turn in 3..TIMES {
        fight(turn).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    ns.eventually(CONVERGED, "people are told", async || {
        let events = ns.list(EVENT, "").await?;
        let told = events.iter().find(|e| e["reason"] == "Contended").ok_or("no event")?;
        holds(told.to_string().contains("Deployment dataplane-gw"), || told.to_string())
    })
    .await;
    // In the middle of the longest rest, a person's edit goes through at once, and takes the repair with it.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "an edit does not wait", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    repaired(TIMES - 1, CONVERGED).await;
    fight(TIMES).await;
    repaired(TIMES, LONGEST_REST + CONVERGED).await;
    ns.ready("gw", READY).await;
    let writes = audit.our_writes().await;
    let deployments = writes.iter().filter(|a| a.resource == "deployments").count();
    assert!((4..=TIMES + 3).contains(&deployments), "{deployments} for {TIMES} foreign ones:\n{}", lines(&writes));
    assert!(writes.len() <= PER_WRITE * TIMES, "{} writes:\n{}", writes.len(), lines(&writes));
    // The fighter has stopped, and so has the operator.
    ns.settled().await;
}

async fn foreign(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let theirs = json!({"metadata": {"labels": {"theirs": "a"}, "annotations": {"theirs": "b"}}});
    for (kind, name) in [(DEPLOYMENT, "dataplane-gw"), (SERVICE, "dataplane-ingress-gw"), (SERVICE, "dataplane-admin-gw")] {
        ns.try_edit("somebody", kind, name, &theirs).await.map_err(String::from).unwrap();
    }
    // A field of the pod template that we do not set, and an annotation as load balancer controllers write it.
    let field = json!({"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}});
    ns.try_edit("somebody", DEPLOYMENT, "dataplane-gw", &field).await.map_err(String::from).unwrap();
    let mut edit = image("kong:3.10");
    super::shape::merge(&mut edit, json!({"spec": {"network": {"services": {"ingress": {"annotations": {"ours": "c"}}}}}}));
    ns.edit(DATA_PLANE, "gw", edit).await;
    ns.eventually(CONVERGED, "our edit, beside what is theirs", async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        same("image", proxy(&deployment)["image"].clone(), json!("kong:3.10"))?;
        same("priority", deployment["spec"]["template"]["spec"]["priorityClassName"].clone(), json!("system-node-critical"))?;
        let service = ns.get(SERVICE, "dataplane-ingress-gw").await?;
        same("our annotation", service["metadata"]["annotations"]["ours"].clone(), json!("c"))
    })
    .await;
    for (kind, name) in [(DEPLOYMENT, "dataplane-gw"), (SERVICE, "dataplane-ingress-gw"), (SERVICE, "dataplane-admin-gw")] {
        let meta = ns.get(kind, name).await.unwrap()["metadata"].clone();
        assert_eq!((&meta["labels"]["theirs"], &meta["annotations"]["theirs"]), (&json!("a"), &json!("b")), "{name}");
    }
    ns.ready("gw", READY).await;
}

/// As kubectl does it.
fn restart(at: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": at}}}}})
}

async fn restarted(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let pods = async |ns: &Ns| ns.list(POD, "app=gw").await.map(|pods| pods.iter().map(uid).collect::<Vec<_>>());
    let before = pods(&ns).await.unwrap();
    let audit = ns.audit().await;
    ns.try_edit("kubectl-rollout", DEPLOYMENT, "dataplane-gw", &restart("2026-01-01T00:00:00Z")).await.map_err(String::from).unwrap();
    ns.eventually(READY, "one new pod", async || {
        let now = pods(&ns).await?;
        holds(now.len() == 1 && now != before, || format!("{now:?}"))
    })
    .await;
    ns.ready("gw", READY).await;
    let writes: Vec<_> = audit.our_writes().await.into_iter().filter(|a| a.resource == "deployments").collect();
    assert!(writes.is_empty(), "a restart is nothing to repair:\n{}", lines(&writes));
    // A later edit rolls once and keeps the mark: taking it away would be a second reason to roll.
    let record = Record::start(&ns, DEPLOYMENT, "dataplane-gw").await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "the image", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    ns.ready("gw", READY).await;
    let mark = |d: &Value| d["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].clone();
    assert!(record.versions().iter().all(|d| mark(d) == "2026-01-01T00:00:00Z"), "the mark was lost");
    let sets = ns.list(REPLICA_SET, "app=gw").await.unwrap();
    assert_eq!(sets.len(), 3, "first, restart, image");
}

async fn removed(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    ns.try_edit("somebody", SERVICE, "dataplane-ingress-gw", &json!({"spec": {"selector": {"app": "elsewhere"}}}))
        .await
        .map_err(String::from)
        .unwrap();
    let owners = json!({"metadata": {"labels": {"gateway-operator.konghq.com/dataplane-service-state": null}}});
    ns.try_edit("somebody", SERVICE, "dataplane-admin-gw", &owners).await.map_err(String::from).unwrap();
    ns.eventually(CONVERGED, "selector and label are back", async || {
        let ingress = ns.get(SERVICE, "dataplane-ingress-gw").await?;
        same("selector", ingress["spec"]["selector"]["app"].clone(), json!("gw"))?;
        let admin = ns.get(SERVICE, "dataplane-admin-gw").await?;
        same("label", admin["metadata"]["labels"]["gateway-operator.konghq.com/dataplane-service-state"].clone(), json!("live"))
    })
    .await;
}

async fn status(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    let ready = ns.ready("gw", READY).await;
    let since = condition(&ready, "Ready").unwrap()["lastTransitionTime"].clone();
    let mut conditions = ready["status"]["conditions"].clone();
    conditions.as_array_mut().unwrap().push(json!({
        "type": "example.com/Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
    }));
    for one in conditions.as_array_mut().unwrap().iter_mut().filter(|c| c["type"] == "Ready") {
        one["status"] = "False".into();
        one["reason"] = "Nonsense".into();
    }
    ns.edit_sub(DATA_PLANE, "gw", "status", json!({"status": {"conditions": conditions, "replicas": 7}})).await;
    let now = ns
        .eventually(CONVERGED, "the status tells the truth again", async || {
            let object = ns.get(DATA_PLANE, "gw").await?;
            super::ns::ready(&object)?;
            same("replicas", object["status"]["replicas"].clone(), json!(1)).map(|()| object)
        })
        .await;
    assert!(condition(&now, "example.com/Theirs").is_some(), "another controller's condition stays");
    assert!(condition(&now, "Ready").unwrap()["lastTransitionTime"].as_str() >= since.as_str());
}

async fn paused(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let paused = |value: Value| json!({"metadata": {"annotations": {"weir.dev/paused": value}}});
    ns.edit(DATA_PLANE, "gw", paused(json!("true"))).await;
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "Paused"], &["weir.dev/paused"], CONVERGED).await;
    let audit = ns.audit().await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.delete(SERVICE, "dataplane-ingress-gw").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let writes: Vec<_> = audit.our_writes().await.into_iter().filter(|a| a.resource != "dataplanes/status").collect();
    assert!(writes.is_empty(), "{}", lines(&writes));
    ns.edit(DATA_PLANE, "gw", paused(Value::Null)).await;
    ns.ready("gw", READY).await;
    assert_eq!(proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap())["image"], "kong:3.10");
}

async fn checked(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    for time in ["now", "again"] {
        ns.edit(DATA_PLANE, "gw", json!({"metadata": {"annotations": {"weir.dev/check-at": time}}})).await;
        ns.eventually(CONVERGED, "it says what it has seen", async || {
            let annotations = ns.get(DATA_PLANE, "gw").await?["metadata"]["annotations"].clone();
            same("checked-at", annotations["weir.dev/checked-at"].clone(), json!(time))
        })
        .await;
    }
    ns.ready("gw", READY).await;
}
