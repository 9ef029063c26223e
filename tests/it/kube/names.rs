//! Names: of former objects, of strangers, given by users (design section 4).

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, HPA, Kind, PDB, SECRET, SERVICE},
    labs::{Lab, lab, shared},
    ns::{COLLECTED, CONVERGED, Ns, READY, SHOWN},
    shape::{gateway, gateway_with, generation, holds, is_owned_by, merge, name_of, same, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("names delete and recreate at once", recreate),
        shared("names delete and recreate again and again", again),
        shared("names a dying child of a former object", dying),
        shared("names strangers on planned names", strangers),
        shared("names a given Service name is taken", taken),
        shared("names children removed by hand come back", removed),
        shared("names dots and long names", shapes),
        lab("names-restart", restart),
    ]
}

fn full(name: &str) -> Value {
    gateway_with(
        name,
        json!({"spec": {
            "deployment": {"scaling": {"horizontal": {"minReplicas": 1, "maxReplicas": 2}}},
            "resources": {"podDisruptionBudget": {"spec": {"maxUnavailable": 1}}}
        }}),
    )
}

/// Every kind of child and how many of each a full DataPlane has.
const CHILDREN: [(Kind, usize); 5] = [(DEPLOYMENT, 1), (SERVICE, 2), (SECRET, 1), (HPA, 1), (PDB, 1)];

/// Exactly one of each child, every one of this owner, none on its way out.
async fn exactly(ns: &Ns, owner: &str, name: &str) -> Result<(), String> {
    for (kind, count) in CHILDREN {
        let all = ns.list(kind, &format!("app={name},gateway-operator.konghq.com/managed-by=dataplane")).await?;
        let own = all.iter().filter(|o| is_owned_by(o, owner) && o["metadata"]["deletionTimestamp"].is_null()).count();
        let names: Vec<String> = all.iter().map(name_of).collect();
        holds(own == count && all.len() == count, || format!("{}: {own} own of {names:?}, wanted {count}", kind.kind))?;
    }
    Ok(())
}

async fn recreate(ns: Ns) {
    ns.apply(&full("gw")).await;
    let first = uid(&ns.ready("gw", READY).await);
    ns.delete(DATA_PLANE, "gw").await;
    ns.apply(&full("gw")).await;
    let second = uid(&ns.get(DATA_PLANE, "gw").await.unwrap());
    assert_ne!(first, second);
    let live = ns.ready("gw", COLLECTED).await;
    ns.eventually(COLLECTED, "one of each child, of the new owner", async || exactly(&ns, &second, "gw").await).await;
    let names: Vec<String> = ns.list(SERVICE, "app=gw").await.unwrap().iter().map(name_of).collect();
    assert_eq!(names, ["dataplane-admin-gw", "dataplane-ingress-gw"], "the planned names, without a suffix");
    assert_ne!(live["status"]["selector"].as_str(), Some(""), "{:#}", live["status"]);
    ns.always(Duration::from_secs(2), "it stays so", async || exactly(&ns, &second, "gw").await).await;
}

async fn again(ns: Ns) {
    for _ in 0..6 {
        ns.apply(&full("gw")).await;
        ns.delete(DATA_PLANE, "gw").await;
    }
    ns.apply(&full("gw")).await;
    let owner = uid(&ns.ready("gw", COLLECTED).await);
    ns.eventually(COLLECTED, "one of each child, of the last owner", async || exactly(&ns, &owner, "gw").await).await;
}

/// A finalizer of somebody else keeps the old children: it waits, says so, and goes on when they are gone.
async fn dying(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let hold = json!({"metadata": {"finalizers": ["test.example.com/hold"]}});
    ns.edit(DEPLOYMENT, "dataplane-gw", hold.clone()).await;
    ns.edit(SERVICE, "dataplane-ingress-gw", hold).await;
    ns.delete(DATA_PLANE, "gw").await;
    ns.apply(&gateway("gw")).await;
    let owner = uid(&ns.get(DATA_PLANE, "gw").await.unwrap());
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "WaitingForOldChild"], &["dataplane", "being deleted"], CONVERGED).await;
    ns.eventually(CONVERGED, "what is free is made", async || {
        let admin = ns.get(SERVICE, "dataplane-admin-gw").await?;
        holds(is_owned_by(&admin, &owner), || format!("{:#}", admin["metadata"]["ownerReferences"]))
    })
    .await;
    for (kind, name) in [(DEPLOYMENT, "dataplane-gw"), (SERVICE, "dataplane-ingress-gw")] {
        ns.edit(kind, name, json!({"metadata": {"finalizers": null}})).await;
    }
    ns.ready("gw", READY).await;
    for (kind, name) in [(DEPLOYMENT, "dataplane-gw"), (SERVICE, "dataplane-ingress-gw")] {
        let child = ns.get(kind, name).await.unwrap();
        assert!(is_owned_by(&child, &owner), "{}", kind.kind);
    }
}

fn foreign_service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "labels": {"app": "stranger"}},
        "spec": {"type": "ClusterIP", "selector": {"app": "stranger"}, "ports": [{"name": "web", "port": 80}]}
    })
}

fn foreign_deployment(name: &str) -> Value {
    let labels = json!({"app": "stranger"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "stranger:1"}]}
        }}
    })
}

/// What of a stranger must not change.
fn essence(object: &Value) -> Value {
    let meta = &object["metadata"];
    json!({"uid": meta["uid"], "labels": meta["labels"], "owners": meta["ownerReferences"], "spec": object["spec"]})
}

async fn strangers(ns: Ns) {
    let mut before = Vec::new();
    for object in [foreign_service("dataplane-admin-gw"), foreign_service("dataplane-ingress-gw"), foreign_deployment("dataplane-gw")] {
        before.push(essence(&ns.post(&object).await));
    }
    for (kind, name) in [(HPA, "gw"), (PDB, "gw")] {
        let spec = if kind == HPA {
            json!({"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "stranger"}})
        } else {
            json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "stranger"}}})
        };
        let object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec});
        before.push(essence(&ns.post(&object).await));
    }
    ns.apply(&full("gw")).await;
    let owner = uid(&ns.ready("gw", READY).await);
    let digits: String = owner.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    ns.eventually(CONVERGED, "one of each child", async || exactly(&ns, &owner, "gw").await).await;
    for (kind, name) in [
        (SERVICE, format!("dataplane-admin-gw-{digits}")),
        (SERVICE, format!("dataplane-ingress-gw-{digits}")),
        (DEPLOYMENT, format!("dataplane-gw-{digits}")),
        (HPA, format!("gw-{digits}")),
        (PDB, format!("gw-{digits}")),
    ] {
        let child = ns.get(kind, &name).await.unwrap();
        assert!(is_owned_by(&child, &owner), "{name}");
    }
    let names =
        [(SERVICE, "dataplane-admin-gw"), (SERVICE, "dataplane-ingress-gw"), (DEPLOYMENT, "dataplane-gw"), (HPA, "gw"), (PDB, "gw")];
    for ((kind, name), before) in names.into_iter().zip(before) {
        let now = essence(&ns.get(kind, name).await.unwrap());
        // The stranger's autoscaler looks at a target that does not exist; nothing of that is in its spec.
        assert_eq!(now, before, "{} {name} of a stranger was touched", kind.kind);
    }
}

async fn taken(ns: Ns) {
    let before = essence(&ns.post(&foreign_service("public")).await);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let named = |name: Value| json!({"spec": {"network": {"services": {"ingress": {"name": name}}}}});
    ns.edit(DATA_PLANE, "gw", named(json!("public"))).await;
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "NameTaken"], &["Service \"public\"", "choose another name"], SHOWN).await;
    // The one in force stays until the new one can be, and everything else goes on.
    ns.get(SERVICE, "dataplane-ingress-gw").await.unwrap();
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    ns.eventually(CONVERGED, "replicas", async || {
        same("replicas", ns.get(DEPLOYMENT, "dataplane-gw").await?["spec"]["replicas"].clone(), json!(2))
    })
    .await;
    assert_eq!(essence(&ns.get(SERVICE, "public").await.unwrap()), before);
    ns.delete(SERVICE, "public").await;
    ns.ready("gw", READY).await;
    ns.eventually(CONVERGED, "the name is ours now, and the old Service gone", async || {
        let service = ns.get(SERVICE, "public").await?;
        same("label", service["metadata"]["labels"]["app"].clone(), json!("gw"))?;
        holds(ns.find(SERVICE, "dataplane-ingress-gw").await?.is_none(), || "dataplane-ingress-gw is still there".into())
    })
    .await;
}

async fn removed(ns: Ns) {
    ns.apply(&full("gw")).await;
    let owner = uid(&ns.ready("gw", READY).await);
    ns.eventually(CONVERGED, "one of each child", async || exactly(&ns, &owner, "gw").await).await;
    for (kind, _) in CHILDREN {
        for child in ns.list(kind, "app=gw,gateway-operator.konghq.com/managed-by=dataplane").await.unwrap() {
            let (name, old) = (name_of(&child), uid(&child));
            ns.delete(kind, &name).await;
            ns.eventually(CONVERGED, &format!("{} {name} is made again", kind.kind), async || {
                holds(ns.find(kind, &name).await?.is_none_or(|now| uid(&now) != old), || "the old one is there".into())?;
                exactly(&ns, &owner, "gw").await
            })
            .await;
        }
    }
    ns.ready("gw", READY).await;
    // The whole set at once.
    for (kind, _) in CHILDREN {
        for child in ns.list(kind, "app=gw,gateway-operator.konghq.com/managed-by=dataplane").await.unwrap() {
            ns.delete(kind, &name_of(&child)).await;
        }
    }
    ns.ready("gw", READY).await;
    ns.eventually(CONVERGED, "one of each child", async || exactly(&ns, &owner, "gw").await).await;
}

async fn shapes(ns: Ns) {
    for name in ["a.b", "1st", &"x".repeat(63), &format!("{}y", "x".repeat(62))] {
        ns.apply(&gateway(name)).await;
    }
    for name in ["a.b", "1st", &"x".repeat(63), &format!("{}y", "x".repeat(62))] {
        ns.ready(name, READY).await;
    }
    ns.get(DEPLOYMENT, "dataplane-a-b").await.unwrap();
    ns.get(SERVICE, "dataplane-ingress-1st").await.unwrap();
    let deployments = ns.list(DEPLOYMENT, "").await.unwrap();
    assert_eq!(deployments.len(), 4, "two long names that differ at their end are two");
}

/// An operator that was away finds what happened meanwhile: recreated under the old name, another spec, a child gone.
async fn restart(lab: Lab) {
    let ns = &lab.ns;
    let mut operator = lab.operator("weir", &[]);
    for name in ["recreated", "edited", "orphaned", "left"] {
        ns.apply(&full(name)).await;
    }
    ns.all_ready(4, READY).await;
    operator.stop(Duration::from_secs(15));
    ns.delete(DATA_PLANE, "recreated").await;
    ns.apply(&full("recreated")).await;
    let mut edited = full("edited");
    merge(
        &mut edited,
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.10"}]}}}}}),
    );
    ns.apply(&edited).await;
    ns.delete(SERVICE, "dataplane-ingress-orphaned").await;
    ns.delete(DATA_PLANE, "left").await;
    let version = |o: &Value| (generation(o), uid(o));
    let operator = lab.operator("weir", &[]);
    ns.all_ready(3, COLLECTED).await;
    for name in ["recreated", "edited", "orphaned"] {
        let owner = uid(&ns.get(DATA_PLANE, name).await.unwrap());
        ns.eventually(COLLECTED, "one of each child", async || exactly(ns, &owner, name).await).await;
    }
    let left = ns.list(SERVICE, "app=left").await.unwrap();
    assert!(
        left.iter().all(|o| !o["metadata"]["deletionTimestamp"].is_null()) || left.is_empty(),
        "{:?}",
        left.iter().map(version).collect::<Vec<_>>()
    );
    drop(operator);
}
