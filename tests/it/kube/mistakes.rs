//! What a user got wrong is on the object the user looks at within [`SHOWN`], names the field and the cure, and holds back nothing else.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, SERVICE},
    labs::shared,
    ns::{CONVERGED, Ns, READY, SHOWN},
    shape::{containers, gateway, gateway_with, holds, image, merge, name_of, proxy, same},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("mistakes in the pod template", in_template),
        shared("mistakes in the autoscaler", in_autoscaler),
        shared("mistakes in the disruption budget", in_budget),
        shared("mistakes in the ingress Service", in_service),
        shared("mistakes a plugin that does not exist", plugin),
        shared("mistakes of a new object", of_a_new_object),
        shared("mistakes a name of 64 characters", long_name),
        shared("mistakes one bad object stops no other", neighbours),
    ]
}

/// A mistake and what is said about it.
struct Mistake {
    what: &'static str,
    /// Merge patch that makes it.
    bad: Value,
    /// Words of the condition: where, and what to do.
    words: &'static [&'static str],
}

fn proxy_with(more: Value) -> Value {
    let mut proxy = json!({"name": "proxy", "image": "kong:3.9"});
    merge(&mut proxy, more);
    containers(json!([proxy]))
}

fn template_mistakes() -> Vec<Mistake> {
    let both = json!([{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    let nowhere = json!([{"name": "nowhere", "mountPath": "/a"}]);
    let probe = json!({"httpGet": {"port": 8100}, "tcpSocket": {"port": 8100}});
    let request = json!({"requests": {"cpu": "3"}, "limits": {"cpu": "2"}});
    let mut two_sources = image("kong:3.9");
    let volumes = json!([{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]);
    merge(&mut two_sources, json!({"spec": {"deployment": {"podTemplateSpec": {"spec": {"volumes": volumes}}}}}));
    vec![
        Mistake { what: "an old image", bad: image("kong:2.8"), words: &["containers[name=proxy].image", "2.8", "use a later image"] },
        Mistake { what: "no image reference", bad: image("kong 3.9"), words: &["containers[name=proxy].image", "no space"] },
        Mistake {
            what: "value and valueFrom",
            bad: proxy_with(json!({"env": both})),
            words: &["containers[0].env[0]", "A has both", "keep one"],
        },
        Mistake {
            what: "an unknown volume",
            bad: proxy_with(json!({"volumeMounts": nowhere})),
            words: &["volumeMounts[0]", "nowhere", "add it"],
        },
        Mistake {
            what: "a probe of two sorts",
            bad: proxy_with(json!({"livenessProbe": probe})),
            words: &["livenessProbe", "exactly one"],
        },
        Mistake {
            what: "a request above its limit",
            bad: proxy_with(json!({"resources": request})),
            words: &["requests[\"cpu\"]", "above the limit"],
        },
        Mistake { what: "a volume of two sources", bad: two_sources, words: &["volumes[0]", "exactly one"] },
    ]
}

/// The proxy and the volumes as they were, whatever the mistake was.
fn mended() -> Value {
    let mut patch = image("kong:3.9");
    merge_null(&mut patch, &["spec", "deployment", "podTemplateSpec", "spec", "volumes"]);
    patch
}

/// Puts a null at a path; `merge` would remove it.
fn merge_null(patch: &mut Value, path: &[&str]) {
    path.iter().fold(patch, |node, step| &mut node[*step]);
}

pub(super) fn annotated(turn: &str) -> Value {
    json!({"spec": {"network": {"services": {"ingress": {"annotations": {"turn": turn}}}}}})
}

pub(super) async fn service_has(ns: &Ns, name: &str, turn: &str) {
    ns.eventually(CONVERGED, "an edit of the Service goes through", async || {
        let service = ns.get(SERVICE, &format!("dataplane-ingress-{name}")).await?;
        same("annotation", service["metadata"]["annotations"]["turn"].clone(), json!(turn))
    })
    .await;
}

pub(super) async fn replicas_are(ns: &Ns, name: &str, count: i32) {
    ns.eventually(CONVERGED, "a change of the replicas goes through", async || {
        same("replicas", ns.get(DEPLOYMENT, &format!("dataplane-{name}")).await?["spec"]["replicas"].clone(), json!(count))
    })
    .await;
}

async fn in_template(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    for (count, mistake) in (2..).zip(template_mistakes()) {
        let good = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
        ns.edit(DATA_PLANE, "gw", mistake.bad).await;
        ns.says(DATA_PLANE, "gw", ["Ready", "False", "ValidationFailed"], mistake.words, SHOWN).await;
        let mut edit = annotated(mistake.what);
        merge(&mut edit, json!({"spec": {"deployment": {"replicas": count % 3}}}));
        ns.edit(DATA_PLANE, "gw", edit).await;
        service_has(&ns, "gw", mistake.what).await;
        replicas_are(&ns, "gw", count % 3).await;
        let held = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
        assert_eq!(held["spec"]["template"], good["spec"]["template"], "{}: the pods run as before", mistake.what);
        let mut cure = mended();
        merge(&mut cure, json!({"spec": {"deployment": {"replicas": 1}}}));
        ns.edit(DATA_PLANE, "gw", cure).await;
        ns.ready("gw", READY).await;
    }
    // A volume that is there twice does not get past the API server.
    let volumes = json!([{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]);
    let twice = json!({"spec": {"deployment": {"podTemplateSpec": {"spec": {"volumes": volumes}}}}});
    let refused = ns.try_edit("test", DATA_PLANE, "gw", &twice).await.unwrap_err();
    assert!(refused.message.contains("volumes[1]") && refused.message.contains("Duplicate value"), "{}", refused.message);
}

async fn in_autoscaler(ns: Ns) {
    ns.apply(&gateway_with("gw", json!({"spec": {"deployment": {"scaling": {"horizontal": {"minReplicas": 1, "maxReplicas": 3}}}}}))).await;
    ns.ready("gw", READY).await;
    let least = |count: i32| json!({"spec": {"deployment": {"scaling": {"horizontal": {"minReplicas": count}}}}});
    ns.edit(DATA_PLANE, "gw", least(5)).await;
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "ValidationFailed"], &["horizontal.minReplicas", "5 is above maxReplicas 3"], SHOWN).await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "an edit of the image goes through", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    ns.edit(DATA_PLANE, "gw", least(2)).await;
    ns.ready("gw", READY).await;
    replicas_are(&ns, "gw", 2).await;
}

async fn in_budget(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let most = |value: &str| json!({"spec": {"resources": {"podDisruptionBudget": {"spec": {"maxUnavailable": value}}}}});
    ns.edit(DATA_PLANE, "gw", most("150%")).await;
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "ValidationFailed"], &["podDisruptionBudget.spec.maxUnavailable", "such as `50%`"], SHOWN)
        .await;
    let mut edit = image("kong:3.10");
    merge(&mut edit, json!({"spec": {"deployment": {"replicas": 2}}}));
    ns.edit(DATA_PLANE, "gw", edit).await;
    replicas_are(&ns, "gw", 2).await;
    ns.edit(DATA_PLANE, "gw", most("50%")).await;
    ns.ready("gw", READY).await;
}

async fn in_service(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let ingress = |block: Value| json!({"spec": {"network": {"services": {"ingress": block}}}});
    let rows: [(Value, &[&str], Value); 3] = [
        (json!({"name": "1-public"}), &["ingress.name", "no name of a Service"], json!({"name": null})),
        (json!({"ports": [{"port": 80}, {"port": 80}]}), &["ports[1].port", "is there twice", "remove one"], json!({"ports": null})),
        (json!({"ports": [{"port": 70000}]}), &["ports[0].port", "65535"], json!({"ports": null})),
    ];
    for (count, (bad, words, cure)) in (2..).zip(rows) {
        ns.edit(DATA_PLANE, "gw", ingress(bad)).await;
        ns.says(DATA_PLANE, "gw", ["Ready", "False", "ValidationFailed"], words, SHOWN).await;
        ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": count}}})).await;
        replicas_are(&ns, "gw", count).await;
        ns.get(SERVICE, "dataplane-ingress-gw").await.unwrap();
        ns.edit(DATA_PLANE, "gw", ingress(cure)).await;
        ns.ready("gw", READY).await;
    }
}

async fn plugin(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"pluginsToInstall": [{"name": "p"}]}})).await;
    ns.says(
        DATA_PLANE,
        "gw",
        ["PluginsInstalled", "False", "ReferencedResourcesNotAvailable"],
        &["KongPluginInstallation", "does not exist", "spec.pluginsToInstall"],
        SHOWN,
    )
    .await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(&ns, "gw", 2).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"pluginsToInstall": null}})).await;
    ns.ready("gw", READY).await;
}

/// The same mistakes in objects that never were good.
async fn of_a_new_object(ns: Ns) {
    for (index, mistake) in template_mistakes().into_iter().enumerate() {
        let name = format!("gw-{index}");
        ns.apply(&gateway_with(&name, mistake.bad)).await;
        ns.says(DATA_PLANE, &name, ["Ready", "False", "ValidationFailed"], mistake.words, SHOWN).await;
        ns.get(SERVICE, &format!("dataplane-ingress-{name}")).await.unwrap();
        assert!(ns.find(DEPLOYMENT, &format!("dataplane-{name}")).await.unwrap().is_none(), "{}: no pods to be wrong", mistake.what);
        ns.edit(DATA_PLANE, &name, annotated("early")).await;
        service_has(&ns, &name, "early").await;
        ns.edit(DATA_PLANE, &name, mended()).await;
        ns.ready(&name, READY).await;
    }
}

async fn long_name(ns: Ns) {
    let name = "a".repeat(64);
    ns.apply(&gateway(&name)).await;
    ns.says(DATA_PLANE, &name, ["Ready", "False", "ValidationFailed"], &["metadata.name", "63 characters", "use a shorter name"], SHOWN)
        .await;
    assert!(ns.list(SERVICE, "").await.unwrap().is_empty());
    let longest = "b".repeat(63);
    ns.apply(&gateway(&longest)).await;
    ns.ready(&longest, READY).await;
    let names: Vec<String> = ns.list(SERVICE, "").await.unwrap().iter().map(name_of).collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.len() <= 63), "{names:?}");
}

async fn neighbours(ns: Ns) {
    ns.apply(&gateway_with("bad", image("kong:2.8"))).await;
    ns.apply(&gateway("good")).await;
    ns.ready("good", READY).await;
    ns.always(Duration::from_secs(2), "the bad one says so all the time", async || {
        let status = ns.get(DATA_PLANE, "bad").await?["status"].to_string();
        holds(status.contains("ValidationFailed"), || status.clone())
    })
    .await;
}
