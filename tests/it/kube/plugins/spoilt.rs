//! What somebody else does to the operator's own copy of a plugin, and how small its records are.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PULLED, annotation, deployment, installation, installed, items, machine, placed, rolled_out, sets,
    shop::{Files, Shop, Way, plugin},
    stays, text, tree, user,
};
use crate::kube::{
    api::{CONFIG_MAP, INSTALLATION},
    labs::{Lab, lab},
    ns::{CONVERGED, Ns},
    shape::{holds, is_owned_by, name_of, same, uid},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-spoilt", spoilt), lab("plugins-ownerless", ownerless), lab("plugins-records", records)]
}

const A_WHILE: Duration = Duration::from_secs(4);
const STOPPED: Duration = Duration::from_secs(20);
/// Annotations have 128 KiB for a record.
const MAX_RECORD: usize = 128 * 1024;
const MODULES: usize = 500;

/// The installation's own ConfigMap, which nobody mounts.
async fn own(ns: &Ns) -> Result<Value, String> {
    let name = text(&ns.get(INSTALLATION, "p").await?["status"]["underlyingConfigMapName"]).to_owned();
    ns.get(CONFIG_MAP, &name).await
}

/// Waits until the installation's own copy is another object than this one, owned by it and with this data.
async fn made_again(ns: &Ns, former: &Value, data: &Value) {
    ns.eventually(PULLED, "the installation's own copy is made again", async || {
        let (now, installation) = (own(ns).await?, ns.get(INSTALLATION, "p").await?);
        holds(uid(&now) != uid(former) && is_owned_by(&now, &uid(&installation)), || format!("{:#}", now["metadata"]))?;
        same("data", &now["data"], data)
    })
    .await;
}

/// Somebody puts another ConfigMap into the place of the installation's own while nobody looks: its files get into no pod, and it goes.
async fn spoilt(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let mut operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let files = plugin("p", "1.0.0");
    let digest = shop.push(Way::Oci, "p", "v1", &files);
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    installed(ns, "p", &digest).await;
    let good = own(ns).await.unwrap();
    operator.stop(STOPPED);

    let keys = good["data"].as_object().unwrap().keys();
    let evil: serde_json::Map<String, Value> = keys.map(|key| (key.clone(), json!("return { PRIORITY = 1, VERSION = 'evil' }"))).collect();
    let meta = &good["metadata"];
    ns.delete(CONFIG_MAP, &name_of(&good)).await;
    let bad = ns
        .post(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": meta["name"],
                "labels": meta["labels"],
                "annotations": meta["annotations"],
                "ownerReferences": meta["ownerReferences"]
            },
            "immutable": true,
            "data": evil
        }))
        .await;

    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    ns.apply(&user("gw", &["p"])).await;
    made_again(ns, &bad, &good["data"]).await;
    rolled_out(ns, "gw", &[&digest]).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &files));
    for map in sets(ns).await.unwrap().1 {
        assert!(!map["data"].to_string().contains("evil"), "{map:#}");
    }
}

/// Somebody takes the owner off the installation's own ConfigMap: it says so, takes nothing away, and goes on once that one is deleted.
async fn ownerless(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    installed(ns, "p", &digest).await;
    ns.apply(&user("gw", &["p"])).await;
    rolled_out(ns, "gw", &[&digest]).await;
    let template = deployment(ns, "gw").await["spec"]["template"].clone();

    let good = own(ns).await.unwrap();
    let name = name_of(&good);
    ns.edit(CONFIG_MAP, &name, json!({"metadata": {"ownerReferences": null}})).await;
    let words = [name.as_str(), "belongs to somebody else", "delete it", "stays on every DataPlane"];
    ns.says(INSTALLATION, "p", ["Accepted", "False", "Failed"], &words, PULLED).await;
    stays(ns, "gw", A_WHILE, &template).await;
    ns.delete(CONFIG_MAP, &name).await;
    made_again(ns, &good, &good["data"]).await;
    ns.says(INSTALLATION, "p", ["Accepted", "True", "Ready"], &[&digest], CONVERGED).await;
    stays(ns, "gw", A_WHILE, &template).await;
}

/// So many long names that keys of ConfigMaps beside them would be too much for a record.
fn large() -> Files {
    let mut files = plugin("p", "1.0.0");
    files.extend((0..MODULES).map(|number| (format!("modules/{}_{number:03}.lua", "m".repeat(140)), format!("return {number}\n"))));
    files
}

/// Files of the only plugin in the record that is under a slot's name.
fn recorded(holder: &Value, at: &str) -> Result<Vec<Value>, String> {
    let record = machine(holder, "weir.dev/decisions");
    let files = record.pointer(&format!("/plugin-packaging/answer{at}/plugins/0/files"));
    files.and_then(Value::as_array).cloned().ok_or_else(|| format!("no files in {record:#}"))
}

/// A record has the path of a file and no key that follows from it; whoever reads it later finds the files all the same.
async fn records(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let mut operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let files = large();
    let digest = shop.push(Way::Raw, "p", "v1", &files);
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    let giving = installed(ns, "p", &digest).await;
    ns.apply(&user("gw", &["p"])).await;
    rolled_out(ns, "gw", &[&digest]).await;
    let made = deployment(ns, "gw").await;
    assert_eq!(tree(ns, &made).await.unwrap(), placed("p", &files));

    let keys: usize = items(&made["spec"]["template"]["spec"]["volumes"])
        .iter()
        .flat_map(|volume| items(&volume["projected"]["sources"]))
        .flat_map(|source| items(&source["configMap"]["items"]))
        .map(|item| text(&item["key"]).len())
        .sum();
    let mine = format!("/{}~1p", ns.name);
    for (holder, at) in [(&giving, ""), (&made, mine.as_str())] {
        let found = recorded(holder, at).unwrap();
        let is_short = |file: &Value| items(file).len() == 2 && file[0].is_string() && file[1].is_u64();
        assert!(found.len() == files.len() && found.iter().all(is_short), "{:?}", found.first());
        let bytes = annotation(holder, "weir.dev/decisions").len();
        assert!(bytes < MAX_RECORD && bytes + keys > MAX_RECORD, "{bytes} bytes, and {keys} of keys prove nothing");
    }

    // The next process believes the records: it asks nobody, and changes nothing.
    ns.settled().await;
    let asked = shop.asked();
    operator.stop_and_restart();
    operator.wait_leading().await;
    stays(ns, "gw", A_WHILE, &made["spec"]["template"]).await;
    rolled_out(ns, "gw", &[&digest]).await;
    assert_eq!(shop.asked(), asked, "requests to the registry");
}
