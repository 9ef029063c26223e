//! Registries that want a password, that are away, and whose tags move.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, PULLED, annotated, annotation, deployment, installation, installed, machine, message, of, rolled_out,
    shop::{Shop, Way, plugin, pull_secret},
    stays, user,
};
use crate::kube::{
    api::{DATA_PLANE, INSTALLATION, SECRET},
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{holds, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-secrets", secrets), lab("plugins-outage", outage), lab("plugins-tags", tags)]
}

/// Without waiting for any backoff.
const AT_ONCE: Duration = Duration::from_secs(5);
const A_WHILE: Duration = Duration::from_secs(5);

fn pulls_with(secret: &str) -> Value {
    json!({"spec": {"imagePullSecretRef": {"name": secret}}})
}

/// The installation gives this, and gives it at once.
async fn at_once(ns: &Ns, name: &str, digest: &str) {
    let begin = Instant::now();
    ns.eventually(AT_ONCE, &format!("{name} gives {digest} at once"), async || {
        let artifact = machine(&ns.get(INSTALLATION, name).await?, "weir.dev/artifact");
        holds(artifact["digest"] == digest, || artifact.to_string())
    })
    .await;
    eprintln!("     plugins: {name} was pulled after {:?}", begin.elapsed());
    installed(ns, name, digest).await;
}

async fn secrets(lab: Lab) {
    let ns = &lab.ns;
    let Some(mut shop) = Shop::private(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let first = shop.push(Way::Docker, "p", "v1", &plugin("p", "1.0.0"));
    let host = shop.registry.host();
    let failed = ["Accepted", "False", "Failed"];
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    ns.says(INSTALLATION, "p", failed, &["wants credentials", &format!("{host}/p"), "name a pull secret"], PULLED).await;

    // The API server itself refuses two of the faults.
    let mut lacking = pull_secret("lacking", "{}");
    lacking["stringData"] = json!({"other": "{}"});
    for secret in [lacking, pull_secret("no-json", "pssst")] {
        let refused = ns.try_apply(&secret).await.unwrap_err();
        assert!(refused.code == 422 && refused.message.contains(".dockerconfigjson"), "{}", refused.message);
    }
    // Each of the others has a text of its own.
    let mut opaque = shop.secret("opaque");
    opaque["type"] = "Opaque".into();
    let entry = |name: &str, entry: Value| pull_secret(name, &json!({"auths": {&host: entry}}).to_string());
    let elsewhere = json!({"auths": {"other.example.com": {"username": "u", "password": "pssst"}}});
    let faults: [(&str, Option<Value>, &str); 7] = [
        ("absent", None, "does not exist"),
        ("opaque", Some(opaque), "has type Opaque"),
        ("no-auths", Some(pull_secret("no-auths", "{}")), "has no `auths`"),
        ("elsewhere", Some(pull_secret("elsewhere", &elsewhere.to_string())), "has no entry for"),
        ("malformed", Some(entry("malformed", json!({"auth": "pssst!"}))), "no base64"),
        ("half", Some(entry("half", json!({"username": "kong"}))), "no password"),
        ("wrong", Some(entry("wrong", json!({"username": "kong", "password": "pssst"}))), "refuses the credentials"),
    ];
    for (name, secret, words) in faults {
        if let Some(secret) = secret {
            ns.apply(&secret).await;
        }
        ns.edit(INSTALLATION, "p", pulls_with(name)).await;
        let object = ns.says(INSTALLATION, "p", failed, &[words], PULLED).await;
        let message = message(&object, "Accepted");
        assert!(words == "refuses the credentials" || message.contains(&format!("{}/{name}", ns.name)), "it names the Secret: {message}");
        assert!(!object.to_string().contains("pssst") && !message.contains("first-password"), "{object:#}");
    }

    // One that comes later.
    ns.edit(INSTALLATION, "p", pulls_with("pull")).await;
    ns.says(INSTALLATION, "p", failed, &["does not exist"], PULLED).await;
    ns.apply(&shop.secret("pull")).await;
    at_once(ns, "p", &first).await;

    // Another password in the registry, then in the Secret, edited where it is.
    shop.registry.set_password("second-password").unwrap();
    let second = shop.push(Way::Docker, "p", "v2", &plugin("p", "2.0.0"));
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    ns.says(INSTALLATION, "p", failed, &["refuses the credentials", &first, "stays on every DataPlane"], PULLED).await;
    ns.edit(SECRET, "pull", json!({"stringData": shop.secret("pull")["stringData"]})).await;
    at_once(ns, "p", &second).await;
    let log = operator.log();
    assert!(!log.contains("pssst") && !log.contains("first-password") && !log.contains("second-password"), "the log tells a password");
}

async fn outage(lab: Lab) {
    let ns = &lab.ns;
    let Some(mut shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    shop.registry.stop();
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    ns.apply(&user("gw", &["p"])).await;
    ns.says(INSTALLATION, "p", ["Accepted", "False", "Failed"], &["cannot be reached"], READY).await;
    let wanted = [PLUGINS_INSTALLED, "False", "ReferencedResourcesNotAvailable"];
    ns.says(DATA_PLANE, "gw", wanted, &["cannot be used", "cannot be reached", "the pods are without it"], CONVERGED).await;
    shop.registry.resume().unwrap();
    rolled_out(ns, "gw", &[&digest]).await;
    installed(ns, "p", &digest).await;

    // What is accepted stays so, and the DataPlane hears nothing of it.
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    shop.registry.stop();
    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/check-at": "down"}))).await;
    ns.says(INSTALLATION, "p", ["Accepted", "True", "Ready"], &["cannot be reached", &digest, "stays in force"], READY).await;
    stays(ns, "gw", A_WHILE, &template).await;
    ns.ready("gw", CONVERGED).await;
    shop.registry.resume().unwrap();
    ns.eventually(READY, "the outage is not told any more", async || {
        let message = message(&ns.get(INSTALLATION, "p").await?, "Accepted");
        holds(!message.contains("cannot be reached") && message.contains(&digest), || message)
    })
    .await;
    stays(ns, "gw", Duration::from_secs(1), &template).await;
}

async fn tags(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let push = |version: &str| shop.push(Way::Oci, "p", "latest", &plugin("p", version));
    let first = push("1.0.0");
    ns.apply(&installation("p", &shop.image("p", "latest"))).await;
    ns.apply(&user("gw", &["p"])).await;
    rolled_out(ns, "gw", &[&first]).await;
    ns.settled().await;

    let (second, asked) = (push("2.0.0"), shop.asked());
    ns.always(A_WHILE, "a tag that moves is nobody's business", async || {
        same("digest", machine(&ns.get(INSTALLATION, "p").await?, "weir.dev/artifact")["digest"].clone(), json!(first))
    })
    .await;
    assert_eq!(shop.asked(), asked, "the registry is not asked");

    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/check-at": "now"}))).await;
    at_once(ns, "p", &second).await;
    rolled_out(ns, "gw", &[&second]).await;
    assert_eq!(annotation(&ns.get(INSTALLATION, "p").await.unwrap(), "weir.dev/checked-at"), "now");

    let third = push("3.0.0");
    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/resync": "10s"}))).await;
    ns.eventually(Duration::from_secs(30), "the tag is looked up again", async || {
        let artifact = machine(&ns.get(INSTALLATION, "p").await?, "weir.dev/artifact");
        holds(artifact["digest"] == third, || artifact.to_string())
    })
    .await;
    rolled_out(ns, "gw", &[&third]).await;
}
