//! Who owns the number of pods: the spec, the scale subresource, an autoscaler; and that it never dips when that changes.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{self, DATA_PLANE, DEPLOYMENT, HPA, JSON},
    labs::shared,
    ns::{CONVERGED, Ns, READY},
    record::Record,
    shape::{gateway, gateway_with, holds, image, proxy, same},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("scaling by the spec", by_spec),
        shared("scaling by the scale subresource", by_subresource),
        shared("scaling autoscaler on and off never dips", on_and_off),
        shared("scaling an autoscaler owns the number", owned_by_autoscaler),
        shared("scaling to zero and back", zero),
    ]
}

async fn replicas(ns: &Ns, count: i32) {
    ns.eventually(CONVERGED, &format!("{count} replicas"), async || {
        same("replicas", ns.get(DEPLOYMENT, "dataplane-gw").await?["spec"]["replicas"].clone(), json!(count))
    })
    .await;
}

fn with_replicas(count: i32) -> Value {
    json!({"spec": {"deployment": {"replicas": count}}})
}

fn autoscaled(least: i32, most: i32) -> Value {
    json!({"spec": {"deployment": {"replicas": null, "scaling": {"horizontal": {"minReplicas": least, "maxReplicas": most}}}}})
}

async fn by_spec(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    replicas(&ns, 1).await;
    for count in [3, 1, 2] {
        ns.edit(DATA_PLANE, "gw", with_replicas(count)).await;
        replicas(&ns, count).await;
        ns.ready("gw", READY).await;
    }
    ns.eventually(CONVERGED, "counts in the status", async || {
        let status = ns.get(DATA_PLANE, "gw").await?["status"].clone();
        same("replicas", (status["replicas"].clone(), status["readyReplicas"].clone()), (json!(2), json!(2)))
    })
    .await;
}

async fn by_subresource(ns: Ns) {
    ns.apply(&gateway_with("gw", with_replicas(1))).await;
    ns.ready("gw", READY).await;
    ns.edit_sub(DATA_PLANE, "gw", "scale", with_replicas_of_scale(3)).await;
    replicas(&ns, 3).await;
    ns.ready("gw", READY).await;
    ns.eventually(CONVERGED, "the subresource shows what is there", async || {
        let path = format!("{}/gw/scale", DATA_PLANE.path(&ns.name));
        let scale = api::call(&ns.client, "GET", &path, JSON, &Value::Null).await?;
        same("replicas", (scale["spec"]["replicas"].clone(), scale["status"]["replicas"].clone()), (json!(3), json!(3)))?;
        holds(scale["status"]["selector"].as_str().is_some_and(|s| !s.is_empty()), || format!("no selector: {scale:#}"))
    })
    .await;
}

fn with_replicas_of_scale(count: i32) -> Value {
    json!({"spec": {"replicas": count}})
}

/// The smallest number the Deployment ever asked for since the record began.
fn least(record: &Record) -> i64 {
    record.versions().iter().map(|d| d["spec"]["replicas"].as_i64().unwrap_or(1)).min().unwrap()
}

async fn on_and_off(ns: Ns) {
    ns.apply(&gateway_with("gw", with_replicas(4))).await;
    ns.ready("gw", READY).await;
    replicas(&ns, 4).await;
    let record = Record::start(&ns, DEPLOYMENT, "dataplane-gw").await;
    ns.edit(DATA_PLANE, "gw", autoscaled(2, 6)).await;
    ns.eventually(CONVERGED, "an autoscaler", async || {
        let hpa = ns.get(HPA, "gw").await?;
        same("bounds", (hpa["spec"]["minReplicas"].clone(), hpa["spec"]["maxReplicas"].clone()), (json!(2), json!(6)))
    })
    .await;
    ns.ready("gw", READY).await;
    // Some more passes: an image change sends the whole Deployment again.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "the image", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    ns.edit(DATA_PLANE, "gw", autoscaled(3, 8)).await;
    ns.eventually(CONVERGED, "the new bounds", async || same("bounds", ns.get(HPA, "gw").await?["spec"]["maxReplicas"].clone(), json!(8)))
        .await;
    let off = json!({"spec": {"deployment": {"replicas": 4, "scaling": null}}});
    ns.edit(DATA_PLANE, "gw", off).await;
    ns.eventually(CONVERGED, "no autoscaler", async || holds(ns.find(HPA, "gw").await?.is_none(), || "it is there".into())).await;
    ns.ready("gw", READY).await;
    ns.always(Duration::from_secs(2), "the number stays", async || {
        same("replicas", ns.get(DEPLOYMENT, "dataplane-gw").await?["spec"]["replicas"].clone(), json!(4))
    })
    .await;
    assert_eq!(least(&record), 4, "it dipped");
}

/// Without metrics the real autoscaler decides nothing, so the test is it: it writes the scale subresource as the controller does.
async fn owned_by_autoscaler(ns: Ns) {
    ns.apply(&gateway_with("gw", autoscaled(2, 9))).await;
    ns.ready("gw", READY).await;
    replicas(&ns, 2).await;
    let path = format!("{}/dataplane-gw/scale?fieldManager=kube-controller-manager", DEPLOYMENT.path(&ns.name));
    let mut scale = api::call(&ns.client, "GET", &path, JSON, &Value::Null).await.map_err(String::from).unwrap();
    scale["spec"]["replicas"] = json!(5);
    api::call(&ns.client, "PUT", &path, JSON, &scale).await.map_err(String::from).unwrap();
    let record = Record::start(&ns, DEPLOYMENT, "dataplane-gw").await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "the image", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, "dataplane-gw").await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    ns.ready("gw", READY).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"labels": {"another": "pass"}}}})).await;
    ns.eventually(CONVERGED, "the label", async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        same("label", deployment["metadata"]["labels"]["another"].clone(), json!("pass"))
    })
    .await;
    assert_eq!(least(&record), 5, "the operator wrote over the autoscaler");
    replicas(&ns, 5).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 3, "scaling": null}}})).await;
    ns.eventually(CONVERGED, "no autoscaler", async || holds(ns.find(HPA, "gw").await?.is_none(), || "it is there".into())).await;
    replicas(&ns, 3).await;
    assert_eq!(least(&record), 3, "from 5 to 3 and nowhere below");
}

async fn zero(ns: Ns) {
    ns.apply(&gateway_with("gw", with_replicas(2))).await;
    ns.ready("gw", READY).await;
    ns.edit(DATA_PLANE, "gw", with_replicas(0)).await;
    replicas(&ns, 0).await;
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "WaitingToBecomeReady"], &["0 of 0"], CONVERGED).await;
    ns.edit(DATA_PLANE, "gw", with_replicas(1)).await;
    replicas(&ns, 1).await;
    ns.ready("gw", READY).await;
}
