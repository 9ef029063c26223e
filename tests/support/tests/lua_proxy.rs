//! nginx with Lua in place of Kong.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail by panicking; helpers outside of a test function too")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_testkit::lua_proxy::{LuaProxy, materialise};
use weir_testkit::skipped;

const HANDLER: &str = "local H = { PRIORITY = 900, VERSION = '1.2.3' }\nfunction H:access() kong.log.debug('x') end\nreturn H";
const SCHEMA: &str = "local typedefs = require 'kong.db.schema.typedefs'\n\
                      return { name = 'simple', fields = { { protocols = typedefs.protocols_http } } }";

fn map(name: &str, data: &Value) -> Value {
    json!({ "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

fn mounted(name: &str, items: &Value) -> (Value, Value) {
    let path = format!("/opt/kong/plugins/{name}");
    (json!({ "name": name, "configMap": { "name": name, "items": items } }), json!({ "name": name, "mountPath": path }))
}

#[test]
fn it_says_what_loads_and_what_does_not() {
    if let Some(reason) = LuaProxy::missing() {
        skipped("lua_proxy", &reason).unwrap();
        return;
    }
    let maps = [
        map("simple", &json!({ "handler": HANDLER, "schema": SCHEMA })),
        map(
            "multi",
            &json!({
                "handler.lua": "local util = require 'kong.plugins.multi.lib.util'\nreturn { PRIORITY = util.one + 1, VERSION = '0.1.0' }",
                "schema.lua": "return { name = 'multi', fields = {} }",
                "util": "return { one = 1 }",
                "folder": "return { two = 2 }",
                "wrong": "return require 'kong.plugins.multi.absent'",
            }),
        ),
        map("broken", &json!({ "handler.lua": "local \"quoted\" =", "schema.lua": "local x = 1" })),
    ];
    let (volumes, mounts): (Vec<Value>, Vec<Value>) = [
        mounted("simple", &json!([{ "key": "handler", "path": "handler.lua" }, { "key": "schema", "path": "schema.lua" }])),
        mounted(
            "multi",
            &json!([
                { "key": "handler.lua", "path": "handler.lua" },
                { "key": "schema.lua", "path": "schema.lua" },
                { "key": "util", "path": "lib/util.lua" },
                { "key": "folder", "path": "lib/init.lua" },
                { "key": "wrong", "path": "lib/wrong.lua" },
            ]),
        ),
        mounted("broken", &json!([])),
    ]
    .into_iter()
    .unzip();
    let deployment =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "proxy", "volumeMounts": mounts }], "volumes": volumes } } } });
    let root = tempfile::tempdir().unwrap();
    materialise(&deployment, &maps, root.path()).unwrap();

    let env = [("KONG_PLUGINS", "bundled, simple,multi,broken,absent"), ("KONG_LUA_PACKAGE_PATH", "/opt/?.lua;/opt/?/init.lua;;")];
    let env: BTreeMap<String, String> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let begin = std::time::Instant::now();
    let proxy = LuaProxy::start(&env, root.path()).unwrap();
    println!("started in {:?}", begin.elapsed());
    let asked = ["kong.plugins.multi.lib.util", "kong.plugins.multi.lib.wrong", "kong.plugins.multi.lib"];
    let answer = proxy.load_with(&asked).unwrap();

    let plugins = &answer["plugins"];
    assert_eq!(plugins.as_object().unwrap().len(), 4, "{answer:#}");
    let simple = &plugins["simple"];
    assert_eq!((&simple["handler"]["PRIORITY"], &simple["handler"]["VERSION"]), (&json!(900), &json!("1.2.3")), "{answer:#}");
    assert_eq!(simple["schema"]["name"], "simple");
    let file = simple["handler"]["file"].as_str().unwrap();
    assert_eq!(std::path::Path::new(file), root.path().canonicalize().unwrap().join("opt/kong/plugins/simple/handler.lua"));
    assert_eq!((&plugins["multi"]["handler"]["ok"], &plugins["multi"]["handler"]["PRIORITY"]), (&json!(true), &json!(2)));
    let modules = &answer["modules"];
    assert_eq!((&modules[asked[0]]["ok"], &modules[asked[2]]["ok"]), (&json!(true), &json!(true)), "{answer:#}");
    assert!(modules[asked[1]]["error"].as_str().unwrap().contains("module 'kong.plugins.multi.absent' not found"), "{answer:#}");

    let broken = &plugins["broken"];
    assert_eq!((&broken["handler"]["ok"], &broken["schema"]["ok"]), (&json!(false), &json!(false)));
    assert!(broken["handler"]["error"].as_str().unwrap().contains("handler.lua:1: "), "{answer:#}");
    assert!(broken["schema"]["error"].as_str().unwrap().contains("returns a boolean, not a table"), "{answer:#}");
    assert!(plugins["absent"]["handler"]["error"].as_str().unwrap().contains("not found"));
    assert_eq!(proxy.load().unwrap()["plugins"]["simple"], *simple);
    assert!(proxy.load_with(&["a b"]).is_err());
}
