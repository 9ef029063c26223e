//! A plugin on the server stack that plugins of CloudNativePG are made with, found by either kind of label.

use serde_json::json;
use weir_remote_plugin::{Files, certificates as make};

use super::{
    BACK, Lab, SERVICE, ready, says,
    server::{address, secret},
    service, slice_at,
};
use crate::{
    kube::ns::CONVERGED,
    remote::{NAME, Plugin, program},
};

/// Found by CloudNativePG's own labels, found by ours, gone, back as another version.
pub(super) async fn stack(lab: Lab) {
    let Some(program) = program("kube remote stack") else { return };
    let system = lab.system();
    let server = make::self_signed(&make::server(&["one"]).unwrap()).unwrap();
    let client = make::self_signed(&make::client().unwrap()).unwrap();
    let files = Files { cert: server.cert.clone(), key: server.key.clone(), clients: client.cert.clone() };
    let mut plugin = Plugin::start_at(&program, &files, address());
    system.apply(&secret("one-client", &client)).await;
    system.apply(&secret("one-server", &server)).await;
    let mut theirs = service("one", NAME);
    theirs["metadata"]["labels"] = json!({"cnpg.io/pluginName": NAME});
    theirs["metadata"]["annotations"] = json!({
        "cnpg.io/pluginPort": "9090", "cnpg.io/pluginClientSecret": "one-client", "cnpg.io/pluginServerSecret": "one-server",
    });
    system.apply(&theirs).await;
    system.apply(&slice_at("one", plugin.address, true)).await;
    let operator = lab.operator("weir", &["--cnpg-plugins"]);
    operator.wait_leading().await;
    for of in ["Discovered", "Configured", "Reachable"] {
        says(&system, "one", [of, "True", of], &[], CONVERGED).await;
    }
    says(&system, "one", ["Ready", "True", "Ready"], &["version 1.0.0"], CONVERGED).await;
    // The same with our label beside it: ours count, and nothing else changes.
    system.apply(&service("one", NAME)).await;
    ready(&system, "one", CONVERGED).await;
    plugin.stop();
    says(&system, "one", ["Ready", "False", "Unreachable"], &[], BACK).await;
    plugin.answer(&json!({"version": "2.0.0"}));
    plugin.resume();
    says(&system, "one", ["Ready", "True", "Ready"], &["version 2.0.0"], BACK).await;
    let metrics = operator.metrics().await;
    assert!((metrics.sum("weir_remote_plugin_up", &[("plugin", NAME)]) - 1.0).abs() < f64::EPSILON);
    assert_eq!(system.get(SERVICE, "one").await.unwrap()["metadata"]["finalizers"], json!(null), "nothing that could outlive the operator");
}
