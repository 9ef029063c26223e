//! Many installations of one artifact: one download, no writes at rest, bounded memory.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;

use super::{
    installation, items, machine, sets,
    shop::{Shop, Way, plugin},
    text, user,
};
use crate::kube::{
    audit::{Asked, lines},
    labs::{Lab, lab},
    shape::{holds, name_of},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-many", many)]
}

const INSTALLATIONS: usize = 200;
const GATEWAYS: usize = 50;
const REST: Duration = Duration::from_secs(30);
const MIB: f64 = 1_048_576.0;

/// Digest of the only layer of an image.
fn layer(shop: &Shop, repository: &str, tag: &str) -> String {
    let manifest = shop.registry.raw(repository).unwrap().pull_manifest(tag).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    text(&manifest["layers"][0]["digest"]).to_owned()
}

async fn many(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    // In the root of the image: each installation gives the plugin its own name.
    let digest = shop.push(Way::Oci, "one", "v1", &plugin("one", "1.0.0"));
    let layer = layer(&shop, "one", "v1");
    for number in 0..INSTALLATIONS {
        ns.apply(&installation(&format!("p-{number}"), &shop.image("one", "v1"))).await;
    }
    let each = INSTALLATIONS / GATEWAYS;
    for number in 0..GATEWAYS {
        let plugins: Vec<String> = (number * each..(number + 1) * each).map(|plugin| format!("p-{plugin}")).collect();
        ns.apply(&user(&format!("gw-{number}"), &plugins.iter().map(String::as_str).collect::<Vec<_>>())).await;
    }
    let all = ns.all_ready(GATEWAYS, Duration::from_secs(240)).await;
    ns.eventually(Duration::from_secs(60), "every gateway has its plugins", async || {
        for gateway in &all {
            let gateway = ns.get(crate::kube::api::DATA_PLANE, &name_of(gateway)).await?;
            let standing = machine(&gateway, "weir.dev/plugins");
            let good = items(&standing).iter().filter(|one| one["digest"] == digest && one["rolledOut"] == true).count();
            holds(good == each, || format!("{}: {standing:#}", name_of(&gateway)))?;
        }
        Ok(())
    })
    .await;
    let (kept, mounted) = sets(ns).await.unwrap();
    assert_eq!((kept.len(), mounted.len()), (INSTALLATIONS, INSTALLATIONS));
    let requests = shop.registry.requests().unwrap();
    let pulled = requests.iter().filter(|r| r.gets_blob() && r.path.ends_with(&layer) && r.agent.starts_with("weir/")).count();
    assert_eq!(pulled, 1, "downloads of {layer} for {INSTALLATIONS} installations");

    ns.settled().await;
    let (audit, asked) = (ns.audit().await, shop.asked());
    tokio::time::sleep(REST).await;
    let user = lab.installation.user_name("weir");
    let is_write = |a: &Asked| a.user == user && a.is_write() && a.resource != "leases";
    let writes: Vec<Asked> = audit.asked().await.into_iter().filter(is_write).collect();
    assert!(writes.is_empty(), "{} writes in {REST:?}:\n{}", writes.len(), lines(&writes));
    assert_eq!(shop.asked(), asked, "the registry is not asked at rest");
    let resident = operator.metrics().await.sum("process_resident_memory_bytes", &[]) / MIB;
    eprintln!("     plugins many: {resident:.0} MiB resident");
    assert!((1.0..150.0).contains(&resident), "{resident:.0} MiB");
}
