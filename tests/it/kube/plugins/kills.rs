//! The operator is killed at any moment while plugins are installed and upgraded: afterwards every pod has the newest content, nothing is
//! there twice, and nothing is there for nobody.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use libtest_mimic::Trial;
use serde_json::Value;

use super::{
    installation, items, maps, of, placed, sets,
    shop::{Files, Shop, Way, plugin},
    text, tree, user,
};
use crate::kube::{
    api::{DEPLOYMENT, INSTALLATION, REPLICA_SET},
    faults::SHORT_LEASE,
    labs::{Lab, lab},
    ns::{CONVERGED, Ns},
    shape::{holds, name_of, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-kills", killed)]
}

const PLUGINS: usize = 10;
const GATEWAYS: usize = 20;
const KILLS: usize = 16;
/// After so many kills there is another version of every plugin.
const EACH: usize = 4;

fn files(number: usize, turn: usize) -> Files {
    plugin(&format!("p-{number}"), &format!("{turn}.0.{number}"))
}

/// Anywhere in the life of a process: before the Lease, while caches fill, in the middle of a pull, between two writes.
fn pause() -> Duration {
    Duration::from_millis(u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs()) % 4_500)
}

/// ConfigMaps that pods of a gateway have or could have again, by the gateway's name.
async fn named(ns: &Ns) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut named = BTreeMap::<String, BTreeSet<String>>::new();
    for kind in [DEPLOYMENT, REPLICA_SET] {
        for holder in ns.list(kind, "app").await? {
            let gateway = text(&holder["metadata"]["labels"]["app"]).to_owned();
            named.entry(gateway).or_default().extend(maps(&holder["spec"]["template"]["spec"]));
        }
    }
    Ok(named)
}

async fn as_planned(ns: &Ns, turn: usize) -> Result<(), String> {
    for number in 0..GATEWAYS {
        let (gateway, plugin) = (format!("gw-{number}"), number % PLUGINS);
        let made = ns.get(DEPLOYMENT, &format!("dataplane-{gateway}")).await?;
        same(&gateway, tree(ns, &made).await?, placed(&format!("p-{plugin}"), &files(plugin, turn)))?;
    }
    let (kept, mounted) = sets(ns).await?;
    let installations = ns.list(INSTALLATION, "").await?;
    let wanted: BTreeSet<String> = installations.iter().map(|i| text(&i["status"]["underlyingConfigMapName"]).to_owned()).collect();
    let kept: Vec<String> = kept.iter().map(name_of).collect();
    holds(kept.len() == PLUGINS && kept.iter().all(|name| wanted.contains(name)), || format!("{kept:?} for {wanted:?}"))?;

    let contents: BTreeSet<&str> = mounted.iter().map(|map| text(&map["metadata"]["labels"][super::CONTENT])).collect();
    same("sets for as many contents", mounted.len(), contents.len())?;
    let named = named(ns).await?;
    for map in &mounted {
        let (name, owners) = (name_of(map), items(&map["metadata"]["ownerReferences"]));
        let uses = |owner: &Value| named.get(text(&owner["name"])).is_some_and(|maps| maps.contains(&name));
        holds(!owners.is_empty() && owners.iter().all(uses), || format!("ConfigMap {name} is there for nobody, of {owners:?}"))?;
    }
    let there: BTreeSet<String> = mounted.iter().map(name_of).collect();
    let lost: Vec<&String> = named.values().flatten().filter(|name| !there.contains(*name)).collect();
    holds(lost.is_empty(), || format!("pods want {lost:?}"))
}

async fn killed(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let turns = 1 + KILLS / EACH;
    for turn in 1..=turns {
        for number in 0..PLUGINS {
            shop.push(Way::Raw, &format!("p-{number}"), &format!("v{turn}"), &files(number, turn));
        }
    }
    let mut operator = shop.operator(&lab, &SHORT_LEASE);
    operator.wait_ready().await;
    let mut turn = 1;
    for number in 0..PLUGINS {
        let name = format!("p-{number}");
        ns.apply(&installation(&name, &shop.image(&name, "v1"))).await;
    }
    for number in 0..GATEWAYS {
        ns.apply(&user(&format!("gw-{number}"), &[&format!("p-{}", number % PLUGINS)])).await;
    }
    for kill in 1..=KILLS {
        tokio::time::sleep(pause()).await;
        operator.kill_and_restart();
        if kill % EACH == 0 {
            turn += 1;
            for number in 0..PLUGINS {
                let name = format!("p-{number}");
                ns.edit(INSTALLATION, &name, of(&shop.image(&name, &format!("v{turn}")))).await;
            }
        }
    }
    // The last turn has begun: once more into the middle of it.
    tokio::time::sleep(pause()).await;
    operator.kill_and_restart();
    ns.eventually(Duration::from_secs(120), "every gateway has the newest content", async || as_planned(ns, turn).await).await;
    ns.all_ready(GATEWAYS, Duration::from_secs(120)).await;
    ns.settled().await;
    as_planned(ns, turn).await.unwrap();

    // Without history exactly one set for each plugin is left, with both its users.
    for set in ns.list(REPLICA_SET, "app").await.unwrap().iter().filter(|set| set["spec"]["replicas"] == 0) {
        ns.delete(REPLICA_SET, &name_of(set)).await;
    }
    ns.eventually(CONVERGED, "only what is in use is left", async || {
        let (_, mounted) = sets(ns).await?;
        let users = mounted.iter().map(|map| items(&map["metadata"]["ownerReferences"]).len());
        same("users of each set", users.collect(), vec![GATEWAYS / PLUGINS; PLUGINS])
    })
    .await;
    as_planned(ns, turn).await.unwrap();
}
