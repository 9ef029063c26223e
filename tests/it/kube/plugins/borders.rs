//! What is in another namespace: only what its owner grants (Gateway API, ReferenceGrant). Withdrawn, it stays where it is and moves no more.

use std::{sync::Arc, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, PULLED, deployment, installation_with, installed, items, machine, of, placed, rolled_out, sets,
    shop::{Shop, Way, plugin},
    stays, tree, user,
};
use crate::kube::{
    api::{self, CRD, DATA_PLANE, INSTALLATION, JSON, Kind},
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{condition, holds},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-borders", borders)]
}

const LIBRARY: &str = "plugins-borders-library";
const A_WHILE: Duration = Duration::from_secs(4);
const GROUP: &str = "gateway-operator.konghq.com";
const CRD_NAME: &str = "referencegrants.gateway.networking.k8s.io";
/// Served only while this test has its CRD installed.
const GRANT: Kind =
    Kind { api_version: "gateway.networking.k8s.io/v1beta1", kind: "ReferenceGrant", plural: "referencegrants", namespaced: true };

async fn remove(ns: &Ns) {
    let _ = api::call(&ns.client, "DELETE", &format!("{}/{CRD_NAME}", CRD.path("")), JSON, &Value::Null).await;
    ns.eventually(READY, "the kind is gone", async || {
        holds(api::find(&ns.client, CRD, "", CRD_NAME).await?.is_none(), || "the CRD is there".into())
    })
    .await;
}

/// Not the Gateway API's own text: no more of the kind than what is needed here. The group's CRDs have to say who approved them.
async fn install(ns: &Ns) {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let crd = json!({
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": CRD_NAME, "annotations": {"api-approved.kubernetes.io": "unapproved, test"}},
        "spec": {
            "group": "gateway.networking.k8s.io",
            "scope": "Namespaced",
            "names": {"kind": GRANT.kind, "listKind": "ReferenceGrantList", "plural": GRANT.plural, "singular": "referencegrant"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": schema}]
        }
    });
    api::apply(&ns.client, "", &crd, "test", true).await.map_err(String::from).unwrap();
    ns.eventually(READY, "the kind is served", async || {
        let crd = api::find(&ns.client, CRD, "", CRD_NAME).await?.ok_or("no CRD")?;
        holds(condition(&crd, "Established").is_some_and(|c| c["status"] == "True"), || crd["status"].to_string())?;
        ns.list(GRANT, "").await.map(drop)
    })
    .await;
}

/// In `ns`: objects of a kind in namespace `from` may name these.
async fn grant(ns: &Ns, name: &str, kind: &str, from: &str, to: Value) {
    let object = json!({
        "apiVersion": GRANT.api_version,
        "kind": GRANT.kind,
        "metadata": {"name": name},
        "spec": {"from": [{"group": GROUP, "kind": kind, "namespace": from}], "to": [to]}
    });
    api::call(&ns.client, "POST", &GRANT.path(&ns.name), JSON, &object).await.map_err(String::from).unwrap();
}

async fn borders(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::private(&lab) else { return };
    let library = Ns::create(ns.client.clone(), LIBRARY, ns.audit.clone(), Arc::clone(&ns.logs)).await;
    remove(ns).await;
    install(ns).await;
    let operator = shop.operator(&lab, &["--watch-namespace", LIBRARY]);
    operator.wait_leading().await;
    library.apply(&shop.secret("pull")).await;
    plugins(ns, &library, &shop).await;
    secrets(ns, &library, &shop).await;
    remove(ns).await;
    library.clear().await;
}

/// A DataPlane names an installation of the library.
async fn plugins(ns: &Ns, library: &Ns, shop: &Shop) {
    let (one, two) = (plugin("p", "1.0.0"), plugin("p", "2.0.0"));
    let first = shop.push(Way::Oci, "p", "v1", &one);
    let second = shop.push(Way::Oci, "p", "v2", &two);
    let reference = format!("{LIBRARY}/p");
    let secret = json!({"spec": {"imagePullSecretRef": {"name": "pull"}}});
    library.apply(&installation_with("p", &shop.image("p", "v1"), secret)).await;
    installed(library, "p", &first).await;
    ns.apply(&user("gw", &[&reference])).await;
    let refused = [PLUGINS_INSTALLED, "False", "RefNotPermitted"];
    ns.says(DATA_PLANE, "gw", refused, &[&reference, "ReferenceGrant", "the pods are without it"], CONVERGED).await;
    assert!(sets(ns).await.unwrap().1.is_empty(), "nothing of it is here");
    // Its owner hears who wants it, and nobody else fills the list of claims.
    let waits = format!("{}/gw waits: no ReferenceGrant in namespace {LIBRARY}", ns.name);
    let ready = ["Ready", "True", "Ready"];
    let object = library.says(INSTALLATION, "p", ready, &["0 of 1 DataPlanes", &waits], CONVERGED).await;
    assert_eq!(machine(&object, "weir.dev/claims"), Value::Null);

    let to = json!({"group": GROUP, "kind": INSTALLATION.kind});
    grant(library, "plugins", DATA_PLANE.kind, &ns.name, to.clone()).await;
    rolled_out(ns, "gw", &[&first]).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &one));
    let (kept, mounted) = sets(ns).await.unwrap();
    assert_eq!((kept.len(), mounted.len(), sets(library).await.unwrap().0.len()), (0, 1, 1), "the copy is here, the source is there");

    // Withdrawn: the pods keep it, no update, nobody new.
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    library.delete(GRANT, "plugins").await;
    ns.says(DATA_PLANE, "gw", refused, &["ReferenceGrant", &first, "stays in the pods"], CONVERGED).await;
    let object = library.says(INSTALLATION, "p", ready, &["0 of 1 DataPlanes", &waits], CONVERGED).await;
    let claims = machine(&object, "weir.dev/claims");
    assert_eq!((items(&claims).len(), &claims[0]["granted"], &claims[0]["permitted"]), (1, &json!(false), &json!(false)));
    library.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    installed(library, "p", &second).await;
    ns.apply(&user("late", &[&reference])).await;
    ns.says(DATA_PLANE, "late", refused, &["the pods are without it"], CONVERGED).await;
    stays(ns, "gw", A_WHILE, &template).await;
    grant(library, "plugins", DATA_PLANE.kind, &ns.name, to).await;
    for name in ["gw", "late"] {
        rolled_out(ns, name, &[&second]).await;
        assert_eq!(tree(ns, &deployment(ns, name).await).await.unwrap(), placed("p", &two));
    }
}

/// An installation names a Secret of the library.
async fn secrets(ns: &Ns, library: &Ns, shop: &Shop) {
    let first = shop.push(Way::Docker, "q", "v1", &plugin("q", "1.0.0"));
    let second = shop.push(Way::Docker, "q", "v2", &plugin("q", "2.0.0"));
    let secret = json!({"spec": {"imagePullSecretRef": {"name": "pull", "namespace": LIBRARY}}});
    ns.apply(&installation_with("q", &shop.image("q", "v1"), secret)).await;
    let words = ["spec.imagePullSecretRef", "ReferenceGrant", "kind Secret"];
    ns.says(INSTALLATION, "q", ["Accepted", "False", "Failed"], &words, PULLED).await;
    // One of another name is none.
    let to = |name: &str| json!({"group": "", "kind": "Secret", "name": name});
    grant(library, "other", INSTALLATION.kind, &ns.name, to("other")).await;
    ns.always(A_WHILE, "it is not pulled", async || {
        let object = ns.get(INSTALLATION, "q").await?;
        holds(condition(&object, "Accepted").is_some_and(|c| c["reason"] == "Failed"), || object["status"].to_string())
    })
    .await;
    grant(library, "pull", INSTALLATION.kind, &ns.name, to("pull")).await;
    installed(ns, "q", &first).await;

    library.delete(GRANT, "pull").await;
    ns.says(INSTALLATION, "q", ["Accepted", "True", "Ready"], &["ReferenceGrant", &first, "stays in force"], CONVERGED).await;
    ns.edit(INSTALLATION, "q", of(&shop.image("q", "v2"))).await;
    ns.says(INSTALLATION, "q", ["Accepted", "False", "Failed"], &["ReferenceGrant", &first], PULLED).await;
    grant(library, "pull", INSTALLATION.kind, &ns.name, to("pull")).await;
    installed(ns, "q", &second).await;
}
