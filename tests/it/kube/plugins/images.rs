//! The nine images that the reference is tested with (facts/kong-operator.md 2.7), made anew: what it refuses is refused with the cause,
//! unless we take more, which the case says.

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_testkit::registry::{Format, Layer};

use super::{
    PULLED, installation, installation_with, installed, of,
    shop::{Files, Shop, Way, plugin},
};
use crate::kube::{
    api::INSTALLATION,
    labs::{Lab, lab},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-images", images)]
}

fn renamed(from: &str, to: &str) -> Files {
    plugin("a", "1.0.0").into_iter().map(|(path, text)| (if path == from { to.to_owned() } else { path }, text)).collect()
}

/// A plugin whose files named here have so many bytes of comment more.
fn grown(paths: &[&str], bytes: usize) -> Files {
    let comment = format!("-- {}\n", "x".repeat(bytes));
    let grow =
        |(path, text): (String, String)| if paths.contains(&path.as_str()) { (path, format!("{comment}{text}")) } else { (path, text) };
    plugin("a", "1.0.0").into_iter().map(grow).collect()
}

async fn images(lab: Lab) {
    let ns = &lab.ns;
    let (Some(shop), Some(private)) = (Shop::open(&lab), Shop::private(&lab)) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;

    // 1 and 2: valid, valid-oci.
    for way in [Way::Docker, Way::Oci] {
        let digest = shop.push(way, way.name(), "v1", &plugin("a", "1.0.0"));
        ns.apply(&installation(way.name(), &shop.image(way.name(), "v1"))).await;
        installed(ns, way.name(), &digest).await;
    }
    // 3: invalid-layers. The reference wants exactly one layer; we take them as a container engine does.
    let dir = shop.written(&plugin("a", "1.0.0"));
    let layers = ["handler.lua", "schema.lua"].map(|file| Layer::new(dir.join(file), &format!("/{file}")));
    let digest = shop.push_layers(Format::V2s2, "layers", "v1", &layers);
    ns.apply(&installation("layers", &shop.image("layers", "v1"))).await;
    installed(ns, "layers", &digest).await;
    // Of 4: the reference refuses any third file; we take further modules.
    let mut more = plugin("a", "1.0.0");
    more.insert("helper.lua".into(), "return {}".into());
    let digest = shop.push(Way::Oci, "more", "v1", &more);
    ns.apply(&installation("more", &shop.image("more", "v1"))).await;
    installed(ns, "more", &digest).await;

    let missing: Files = plugin("a", "1.0.0").into_iter().filter(|(path, _)| path == "handler.lua").collect();
    let refused: [(&str, Files, &[&str]); 4] = [
        // 4: invalid-name. Both name the file and the two that are wanted.
        ("name", renamed("handler.lua", "my-handler.lua"), &["MissingFiles", "handler.lua and schema.lua", "my-handler.lua"]),
        // 5: missing-file. Both name what is missing.
        ("missing", missing, &["MissingFiles", "no schema.lua"]),
        // 6: invalid-size-one. Both name the limit; we name the file too.
        ("one", grown(&["handler.lua"], 1 << 20), &["handler.lua", "at most 1 MiB"]),
        // 7: invalid-size-combined. The same limit; ours is a setting of the policy.
        ("sum", grown(&["handler.lua", "schema.lua"], 700_000), &["TooBig", "at most 1048576", "handler.lua", "schema.lua"]),
    ];
    for (name, files, words) in refused {
        shop.push(Way::Oci, name, "v1", &files);
        ns.apply(&installation(name, &shop.image(name, "v1"))).await;
        ns.says(INSTALLATION, name, ["Accepted", "False", "Failed"], words, PULLED).await;
        let object = ns.get(INSTALLATION, name).await.unwrap();
        assert_eq!(object["status"]["underlyingConfigMapName"], Value::Null, "{object:#}");
        // Mended, it is taken.
        let digest = shop.push(Way::Raw, name, "v2", &plugin("a", "1.0.0"));
        ns.edit(INSTALLATION, name, of(&shop.image(name, "v2"))).await;
        installed(ns, name, &digest).await;
    }

    // 8 and 9: the private image, without credentials and with them.
    let digest = private.push(Way::Docker, "secret", "v1", &plugin("a", "1.0.0"));
    let image = private.image("secret", "v1");
    ns.apply(&installation("without", &image)).await;
    ns.says(INSTALLATION, "without", ["Accepted", "False", "Failed"], &["wants credentials", "pull secret"], PULLED).await;
    ns.apply(&private.secret("pull")).await;
    ns.apply(&installation_with("with", &image, json!({"spec": {"imagePullSecretRef": {"name": "pull"}}}))).await;
    installed(ns, "with", &digest).await;
}
