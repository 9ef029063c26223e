//! `weir plan --remote`.

use libtest_mimic::Trial;
use serde_json::Value;
use weir_remote_plugin::{Behavior, Config, Server, start};

use super::{Keys, Plugin, program, weir};
use crate::support::{guest, test};

const PLUGIN: &str = "env.example.com";

pub(super) fn tests() -> Vec<Trial> {
    vec![
        test("cli plan --remote: a plugin answers its slots", answers),
        test("cli plan --remote: what is wrong is said before anything is planned", wrong),
        test("cli plan --remote: a plugin that only has hooks is asked about objects", hooks_only),
    ]
}

/// A plugin that serves konnect-env.
fn serve(keys: &Keys, name: &str) -> Server {
    let behavior = Behavior { slots: vec!["konnect-env".into()], ..Behavior::good(name) };
    let config = Config { listen: "127.0.0.1:0".parse().unwrap(), files: keys.files(), behavior };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(start(config)).unwrap()
}

fn plan(keys: &Keys, remote: &str, more: &[&str]) -> (i32, String, String) {
    let begin = ["plan", "-f", "examples/konnect-hybrid/", "-o", "json", "--remote", remote].map(str::to_owned);
    let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    weir(&[&begin[..], &keys.flags("--remote-"), &more].concat())
}

fn at(server: &Server) -> String {
    format!("{PLUGIN}={}", server.address())
}

fn value(plan: &str, name: &str) -> Option<String> {
    let plan: Value = serde_json::from_str(plan).unwrap();
    let deployment = plan["objects"].as_array().unwrap().iter().find(|object| object["kind"] == "Deployment").unwrap();
    let env = deployment.pointer("/spec/template/spec/containers/0/env").unwrap().as_array().unwrap();
    env.iter().find(|var| var["name"] == name).map(|var| var["value"].as_str().unwrap().to_owned())
}

fn answers() {
    let keys = Keys::new();
    let server = serve(&keys, PLUGIN);
    let (code, out, err) = plan(&keys, &at(&server), &[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(value(&out, "KONG_PLUGIN_VERSION").as_deref(), Some("1.0.0"), "{out}");
    assert!(out.contains(&format!("\"remote:{PLUGIN}\"")), "the plan names who answered");
    assert!(server.handle().calls() > 0);
    // Settings go to the plugin, which judges them.
    let file = keys.dir.path().join("settings.yaml");
    let settings = format!("konnect-env={}", file.display());
    std::fs::write(&file, "prefix: MY_\n").unwrap();
    let (code, out, err) = plan(&keys, &at(&server), &["--settings", &settings]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(value(&out, "MY_PLUGIN_VERSION").as_deref(), Some("1.0.0"));
    std::fs::write(&file, "prefix: forbidden\n").unwrap();
    let (code, _, err) = plan(&keys, &at(&server), &["--settings", &settings]);
    assert!(code == 2 && err.contains("another prefix, please"), "{code} {err}");
    // A file that is named for a slot is meant.
    let policy = format!("konnect-env={}", guest("konnect-env").display());
    let (code, out, err) = plan(&keys, &at(&server), &["--policy", &policy]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(value(&out, "KONG_PLUGIN_VERSION"), None);
}

fn wrong() {
    let keys = Keys::new();
    let server = serve(&keys, "other.example.com");
    let says = |outcome: (i32, String, String), code: i32, words: &[&str]| {
        let (found, out, err) = outcome;
        assert!(found == code && out.is_empty() && words.iter().all(|word| err.contains(word)), "{code} {words:?}: {found} {out} {err}");
    };
    says(plan(&keys, &at(&server), &[]), 7, &["--remote env.example.com=", "NameMismatch", "other.example.com"]);
    says(plan(&Keys::new(), &at(&server), &[]), 6, &["ServerNotTrusted"]);
    let twice = at(&server);
    says(plan(&keys, &at(&server), &["--remote", &twice]), 2, &["is there twice"]);
    let address = at(&server);
    drop(server);
    says(plan(&keys, &address, &[]), 5, &["Unreachable"]);
    let begin = ["plan", "-f", "examples/konnect-hybrid/", "--remote", "a=b:1"].map(str::to_owned);
    says(weir(&begin), 2, &["--remote-ca"]);
    let (one, two) = (serve(&keys, PLUGIN), serve(&keys, "second.example.com"));
    let second = format!("second.example.com={}", two.address());
    says(plan(&keys, &at(&one), &["--remote", &second]), 2, &["slot konnect-env is advertised by"]);
}

fn hooks_only() {
    let Some(program) = program("cli plan --remote: a plugin that only has hooks is asked about objects") else { return };
    let keys = Keys::new();
    let plugin = Plugin::start(&program, &keys.files());
    let (code, out, err) = plan(&keys, &format!("{}={}", super::NAME, plugin.address), &[]);
    assert!(code == 0 && out.contains("cnpg.example.com/seen"), "{code} {err} {out}");
}
