//! From an image to pods, whoever pushed it.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use serde_json::json;

use super::{
    PLUGINS_INSTALLED, deployment, installation, installed, items, machine, maps, placed, rolled_out, sets,
    shop::{Files, Shop, plugin},
    text, tree, user,
};
use crate::kube::{
    api::{CONFIG_MAP, DATA_PLANE, INSTALLATION, POD},
    labs::{Lab, lab},
    ns::CONVERGED,
    shape::{env, holds, is_owned_by, name_of, proxy, same, uid},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-install", install)]
}

async fn install(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let (mut names, mut digests, mut wanted) = (Vec::new(), Vec::new(), Files::new());
    for way in shop.ways() {
        let (name, files) = (way.name(), plugin(way.name(), "1.2.3"));
        let digest = shop.push(way, name, "v1", &files);
        ns.apply(&installation(name, &shop.image(name, "v1"))).await;
        let object = installed(ns, name, &digest).await;
        ns.says(INSTALLATION, name, ["Accepted", "True", "Ready"], &[&digest, &format!("{name} 1.2.3")], CONVERGED).await;
        // The installation's own copy: nobody mounts it.
        let kept = ns.get(CONFIG_MAP, text(&object["status"]["underlyingConfigMapName"])).await.unwrap();
        assert!(kept["immutable"] == true && is_owned_by(&kept, &uid(&object)), "{kept:#}");
        let data: Vec<_> = kept["data"].as_object().unwrap().values().map(text).collect();
        assert!(data.len() == 2 && files.values().all(|file| data.contains(&file.as_str())), "{kept:#}");
        wanted.extend(placed(name, &files));
        names.push(name);
        digests.push(digest);
    }
    ns.apply(&user("gw", &names)).await;
    let gateway = rolled_out(ns, "gw", &digests.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut words = names.clone();
    words.push("1.2.3");
    words.push("rolled out");
    ns.says(DATA_PLANE, "gw", [PLUGINS_INSTALLED, "True", "Installed"], &words, CONVERGED).await;
    for (name, one) in names.iter().zip(items(&machine(&gateway, "weir.dev/plugins"))) {
        assert_eq!(one["installation"], format!("{}/{name}", ns.name));
        assert_eq!(one["plugins"], json!([{"name": name, "version": "1.2.3"}]));
    }

    let made = deployment(ns, "gw").await;
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(env(&made)["KONG_PLUGINS"], format!("bundled,{}", sorted.join(",")));
    assert_eq!(env(&made)["KONG_LUA_PACKAGE_PATH"], "/opt/?.lua;/opt/?/init.lua;;");
    let mounts = proxy(&made)["volumeMounts"].clone();
    for name in &names {
        let mount = items(&mounts).iter().find(|mount| mount["mountPath"] == format!("/opt/kong/plugins/{name}"));
        let mount = mount.unwrap_or_else(|| panic!("{name} is not mounted: {mounts:#}"));
        assert_eq!((&mount["name"], &mount["readOnly"]), (&json!(format!("plugin-{name}")), &json!(true)));
    }
    assert_eq!(tree(ns, &made).await.unwrap(), wanted);

    // What pods mount: immutable, and nobody's alone.
    let (kept, mounted) = sets(ns).await.unwrap();
    let wanted = maps(&made["spec"]["template"]["spec"]);
    assert_eq!((kept.len(), mounted.iter().map(name_of).collect::<BTreeSet<_>>()), (names.len(), wanted.clone()));
    for map in &mounted {
        let owners = items(&map["metadata"]["ownerReferences"]);
        let plain = owners.len() == 1 && owners[0]["uid"] == gateway["metadata"]["uid"] && owners[0]["kind"] == "DataPlane";
        let controls = owners.iter().any(|owner| owner["controller"] == true || owner["blockOwnerDeletion"] == true);
        assert!(map["immutable"] == true && plain && !controls, "{:#}", map["metadata"]);
    }
    ns.eventually(CONVERGED, "every pod has the plugins", async || {
        let pods = ns.list(POD, "app=gw").await?;
        let staying: Vec<_> = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
        holds(staying.len() == 1, || format!("{} pods", staying.len()))?;
        same("ConfigMaps of the pod", maps(&staying[0]["spec"]), wanted.clone())
    })
    .await;
    ns.eventually(CONVERGED, "each installation counts its user", async || {
        for name in &names {
            same("users", machine(&ns.get(INSTALLATION, name).await?, "weir.dev/artifact")["consumers"].clone(), json!(1))?;
        }
        Ok(())
    })
    .await;
}
