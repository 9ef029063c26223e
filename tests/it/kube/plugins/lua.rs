//! What the API server has in the end is loaded by Lua as Kong loads it.

use libtest_mimic::Trial;
use serde_json::json;
use weir_testkit::{
    lua_proxy::{LuaProxy, materialise},
    skipped,
};

use super::{
    CONTENT, annotated, deployment, installation_with, installed, items, rolled_out,
    shop::{Files, Shop, Way, handler, inside, plugin, schema},
    text, user,
};
use crate::kube::{
    api::CONFIG_MAP,
    labs::{Lab, lab},
    shape::env,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-lua", loads)]
}

const LIB: &str = "kong.plugins.multi.lib.util";
/// A folder with `init.lua`.
const FOLDER: &str = "kong.plugins.multi.lib";
const PARTS: [&str; 3] = ["one", "three", "two"];

/// With modules beside it and below it.
fn multi() -> Files {
    let mut files = plugin("multi", "2.0.0");
    let before = format!("local util = require(\"{LIB}\")\nassert(util.one == 1)\nassert(require(\"{FOLDER}\").two == 2)\n");
    files.insert("handler.lua".into(), handler(&before, "2.0.0"));
    files.insert("lib/init.lua".into(), "return { two = 2 }\n".into());
    files.insert("lib/util.lua".into(), "return { one = require(\"kong.plugins.multi.one\") }\n".into());
    files.insert("one.lua".into(), "return 1\n".into());
    files.insert("migrations/init.lua".into(), "return {}\n".into());
    files
}

/// More than one ConfigMap holds: three modules of 600 kB each.
fn split() -> Files {
    let mut files = Files::from([("schema.lua".to_owned(), schema("split"))]);
    let mut before = String::new();
    for part in PARTS {
        let comment = format!("-- {}\n", "x".repeat(96)).repeat(6_000);
        files.insert(format!("data/{part}.lua"), format!("{comment}return {{ name = \"{part}\" }}\n"));
        before.push_str(&format!("assert(require(\"kong.plugins.split.data.{part}\").name == \"{part}\")\n"));
    }
    files.insert("handler.lua".into(), handler(&before, "3.0.0"));
    files
}

async fn loads(lab: Lab) {
    let ns = &lab.ns;
    if let Some(reason) = LuaProxy::missing() {
        skipped("kube plugins lua", &reason).unwrap();
        return;
    }
    let Some(shop) = Shop::open(&lab) else { return };
    let settings = shop.settings("plugin-packaging", &json!({"maxBytes": 4 << 20}));
    let operator = shop.operator(&lab, &["--settings", &settings]);
    operator.wait_leading().await;
    // Name of the installation, name of the plugin, version, files, folder in the image.
    let all = [
        ("single", "single", "1.0.0", plugin("single", "1.0.0"), ""),
        ("multi", "multi", "2.0.0", multi(), "usr/local/share/lua/5.1/kong/plugins/multi"),
        ("split", "split", "3.0.0", split(), "split"),
        ("under-score", "under_score", "4.0.0", plugin("under_score", "4.0.0"), ""),
    ];
    let mut digests = Vec::new();
    for (name, plugin, _, files, folder) in &all {
        let files = if folder.is_empty() { files.clone() } else { inside(folder, files) };
        let digest = shop.push(Way::Oci, name, "v1", &files);
        let named = annotated(json!({"weir.dev/plugin-name": plugin}));
        ns.apply(&installation_with(name, &shop.image(name, "v1"), named)).await;
        installed(ns, name, &digest).await;
        digests.push(digest);
    }
    ns.apply(&user("gw", &all.iter().map(|(name, ..)| *name).collect::<Vec<_>>())).await;
    rolled_out(ns, "gw", &digests.iter().map(String::as_str).collect::<Vec<_>>()).await;

    let made = deployment(ns, "gw").await;
    let volumes = items(&made["spec"]["template"]["spec"]["volumes"]);
    let parts = volumes.iter().find(|volume| volume["name"] == "plugin-split").map(|volume| items(&volume["projected"]["sources"]).len());
    assert!(parts.is_some_and(|parts| parts > 1), "{parts:?} ConfigMaps of the large one");
    let maps = ns.list(CONFIG_MAP, CONTENT).await.unwrap();
    let root = shop.scratch();
    materialise(&made, &maps, &root).unwrap();
    let proxy = LuaProxy::start(&env(&made), &root).unwrap();
    let modules = ["kong.plugins.multi.migrations", "kong.plugins.multi.migrations.init", LIB, FOLDER, "kong.plugins.split.data.two"];
    let answer = proxy.load_with(&modules).unwrap();
    assert_eq!(answer["plugins"].as_object().unwrap().len(), all.len(), "{answer:#}");
    let root = root.canonicalize().unwrap();
    for (_, plugin, version, ..) in &all {
        let loaded = &answer["plugins"][*plugin];
        for file in ["handler", "schema"] {
            let path = root.join(format!("opt/kong/plugins/{plugin}/{file}.lua"));
            assert!(loaded[file]["ok"] == true && text(&loaded[file]["file"]) == path.display().to_string(), "{plugin} {file}: {answer:#}");
        }
        assert_eq!((text(&loaded["handler"]["VERSION"]), text(&loaded["schema"]["name"])), (*version, *plugin), "{answer:#}");
    }
    for module in modules {
        assert_eq!(answer["modules"][module]["ok"], true, "{module}: {answer:#}");
    }
}
