//! A plugin that cannot be had holds back itself only, and what the pods have stays.

use std::sync::Arc;

use weir_core::{
    dataplane::snapshot::{Installation, Lookup},
    plan::{ChildKind, HeldPart},
    plugin_installation::{Standing, content::Content},
};

use crate::{policies::content, support::steps, world::World};

/// A way in which `other/rate` cannot be used: reason, and words of the message.
struct Trouble {
    what: &'static str,
    make: fn(&mut World),
    reason: &'static str,
    words: &'static [&'static str],
}

fn without_content(standing: Standing, problem: Option<&str>) -> Lookup<Installation> {
    Lookup::Found(Installation { content: None, stored: false, standing, problem: problem.map(String::from) })
}

const NOT_AVAILABLE: &str = "ReferencedResourcesNotAvailable";

fn troubles() -> Vec<Trouble> {
    vec![
        Trouble {
            what: "missing",
            make: |w| w.plugin("other/rate").installation = Lookup::Missing,
            reason: NOT_AVAILABLE,
            words: &["does not exist", "create it, or remove it from spec.pluginsToInstall"],
        },
        Trouble {
            what: "not known",
            make: |w| w.plugin("other/rate").installation = Lookup::Unknown,
            reason: NOT_AVAILABLE,
            words: &["is not known", "--enable-plugin-installations"],
        },
        Trouble {
            what: "pending",
            make: |w| w.plugin("other/rate").installation = without_content(Standing::Granted, None),
            reason: "Pending",
            words: &["is being fetched"],
        },
        Trouble {
            what: "not accepted",
            make: |w| w.plugin("other/rate").installation = without_content(Standing::Granted, Some("no such manifest: mend spec.image")),
            reason: NOT_AVAILABLE,
            words: &["cannot be used: no such manifest: mend spec.image"],
        },
        Trouble {
            what: "not permitted",
            make: |w| w.plugin("other/rate").permitted = false,
            reason: "RefNotPermitted",
            words: &["create a ReferenceGrant in namespace other", "kind DataPlane", "KongPluginInstallation"],
        },
        Trouble {
            what: "claim refused",
            make: |w| w.installation("other/rate").standing = Standing::Refused("claimed by DataPlane ns/first".into()),
            reason: "Rejected",
            words: &["is not for this DataPlane", "claimed by DataPlane ns/first", "remove it from spec.pluginsToInstall"],
        },
        Trouble {
            what: "claim held",
            make: |w| w.installation("other/rate").standing = Standing::Held("the owner is asked".into()),
            reason: "Held",
            words: &["is not decided for this DataPlane", "the owner is asked", "remove it from spec.pluginsToInstall"],
        },
        Trouble {
            what: "claim unknown",
            make: |w| w.installation("other/rate").standing = Standing::Unknown,
            reason: "Pending",
            words: &["has not decided yet who may use it"],
        },
        Trouble {
            what: "not stored",
            make: |w| w.installation("other/rate").stored = false,
            reason: NOT_AVAILABLE,
            words: &["is being stored"],
        },
    ]
}

fn old() -> Arc<Content> {
    content(&["rate"], "1.0.0")
}

fn check_words(world: &World, trouble: &Trouble) {
    let what = trouble.what;
    let (status, reason, message) = world.said("PluginsInstalled");
    assert_eq!((status.as_str(), reason.as_str()), ("False", trouble.reason), "{what}");
    assert!(message.contains("KongPluginInstallation other/rate"), "{what}: {message}");
    for words in trouble.words {
        assert!(message.contains(words), "{what}: {message}");
    }
    assert_eq!(world.word("Ready"), "False/ReferencedResourcesNotAvailable", "{what}");
    assert_eq!(world.machine()[0]["missing"], trouble.reason, "{what}");
    assert_eq!(world.machine()[0]["fetched"], false, "{what}");
}

#[test]
fn without_earlier_content_the_pods_come_without_it() {
    for trouble in troubles().into_iter().filter(|trouble| trouble.reason != "Pending") {
        let what = trouble.what;
        let mut world = World::new();
        world.install("other/rate", &old());
        (trouble.make)(&mut world);
        let plan = world.pass();
        let create = |kind| ("create", kind);
        assert_eq!(
            steps(&plan),
            [create(ChildKind::Service), create(ChildKind::Service), ("mint", ChildKind::Secret), create(ChildKind::Deployment)],
            "{what}"
        );
        let holds: Vec<(HeldPart, &str)> = plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect();
        assert_eq!(holds, [(HeldPart::Plugin, trouble.reason)], "{what}");
        assert!(plan.holds[0].message.ends_with("the pods are without it"), "{what}: {}", plan.holds[0].message);
        assert!(plan.events.iter().any(|e| e.reason == trouble.reason), "{what}");
        world.converge();
        check_words(&world, &trouble);
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled"), "{what}");
        assert_eq!(world.env("KONG_LUA_PACKAGE_PATH"), None, "{what}");
        assert_eq!(world.volume("plugin-rate"), None, "{what}");

        // It is mended.
        world.plugin("other/rate").permitted = true;
        world.publish("other/rate", &old());
        world.converge();
        assert!(world.mounts(&old()), "{what}");
        assert_eq!((world.word("PluginsInstalled").as_str(), world.word("Ready").as_str()), ("True/Installed", "True/Ready"), "{what}");
    }
}

#[test]
fn what_is_not_known_yet_is_waited_for_before_there_are_pods() {
    for trouble in troubles().into_iter().filter(|trouble| trouble.reason == "Pending") {
        let what = trouble.what;
        let mut world = World::new();
        world.install("other/rate", &old());
        (trouble.make)(&mut world);
        let plan = world.pass();
        let create = |kind| ("create", kind);
        assert_eq!(steps(&plan), [create(ChildKind::Service), create(ChildKind::Service), ("mint", ChildKind::Secret)], "{what}");
        let holds: Vec<(HeldPart, &str)> = plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect();
        assert_eq!(holds, [(HeldPart::PodTemplate, "Pending")], "{what}");
        world.converge();
        check_words(&world, &trouble);
        world.publish("other/rate", &old());
        world.converge();
        assert!(world.mounts(&old()) && world.rolls == 1, "{what}: made once, with it");
    }
}

#[test]
fn with_earlier_content_that_stays_and_the_rest_goes_on() {
    for trouble in troubles() {
        let what = trouble.what;
        let mut world = World::new();
        world.install("other/rate", &old());
        world.converge();
        (trouble.make)(&mut world);
        world.converge();
        assert_eq!(world.rolls, 1, "{what}");
        check_words(&world, &trouble);
        let message = world.said("PluginsInstalled").2;
        assert!(message.contains(&format!("{} stays in the pods", old().digest)), "{what}: {message}");
        let machine = world.machine();
        assert_eq!((&machine[0]["configured"], &machine[0]["rolledOut"]), (&true.into(), &true.into()), "{what}");
        assert_eq!(machine[0]["digest"], old().digest, "{what}");

        world.image("kong:3.10");
        world.converge();
        assert_eq!(world.rolls, 2, "{what}");
        assert_eq!(world.template().spec.as_ref().unwrap().containers[0].image.as_deref(), Some("kong:3.10"), "{what}");
        assert!(world.mounts(&old()), "{what}");
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,rate"), "{what}");

        world.scale(4);
        world.converge();
        assert_eq!((world.rolls, world.live().spec.as_ref().unwrap().replicas), (2, Some(4)), "{what}");
        world.forget_history();
        world.converge();
        assert!(world.holds(&old()), "{what}: never released while pods use it");
    }
}

#[test]
fn a_grant_that_is_withdrawn_lets_no_update_in() {
    let mut world = World::new();
    world.install("other/rate", &old());
    world.converge();
    world.plugin("other/rate").permitted = false;
    world.publish("other/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    assert_eq!((world.word("PluginsInstalled").as_str(), world.rolls), ("False/RefNotPermitted", 1));
    assert!(world.mounts(&old()));
    world.plugin("other/rate").permitted = true;
    world.converge();
    assert!(world.mounts(&content(&["rate"], "2.0.0")));
}

#[test]
fn a_claim_that_was_lost_lets_no_update_in() {
    let mut world = World::new();
    world.install("other/rate", &old());
    world.converge();
    world.publish("other/rate", &content(&["rate"], "2.0.0"));
    world.installation("other/rate").standing = Standing::Refused("claimed by DataPlane ns/first".into());
    world.converge();
    assert_eq!((world.word("PluginsInstalled").as_str(), world.rolls), ("False/Rejected", 1));
}

/// A verdict that waits is `Held`, also in the DataPlane's word about its policies (semantics "Words").
#[test]
fn a_claim_that_waits_is_held_and_not_rejected() {
    let mut world = World::new();
    world.extend();
    world.install("other/rate", &old());
    world.converge();
    world.publish("other/rate", &content(&["rate"], "2.0.0"));
    world.installation("other/rate").standing = Standing::Held("the owner is asked".into());
    world.converge();
    assert_eq!((world.word("PluginsInstalled").as_str(), world.word("PoliciesApplied").as_str()), ("False/Held", "False/Held"));
    assert!(world.mounts(&old()) && world.said("PoliciesApplied").2.contains("the owner is asked"));
}

#[test]
fn an_update_that_fails_is_the_installations_trouble() {
    let mut world = World::new();
    world.install("other/rate", &old());
    world.converge();
    // What is in force stays in force there, too.
    world.installation("other/rate").problem = Some("the newer artifact cannot be used".into());
    assert!(world.is_steady());
    assert_eq!(world.word("PluginsInstalled"), "True/Installed");
}

#[test]
fn the_pods_outlive_the_installation() {
    let mut world = World::new();
    world.install("other/rate", &old());
    world.converge();
    world.plugin("other/rate").installation = Lookup::Missing;
    world.converge();
    assert!(world.mounts(&old()) && world.holds(&old()));
    assert_eq!(world.rolls, 1);

    world.uninstall("other/rate");
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_PLUGINS").as_deref()), (2, Some("bundled")));
    assert_eq!(world.volume("plugin-rate"), None);
    assert_eq!((world.condition("PluginsInstalled"), world.word("Ready").as_str()), (None, "True/Ready"));
    world.forget_history();
    world.converge();
    assert_eq!(world.snapshot.children.contents, []);

    world.name_installation("other/rate");
    world.converge();
    assert_eq!(world.volume("plugin-rate"), None, "what it gave once is forgotten with the reference");
}

#[test]
fn one_that_is_missing_does_not_hold_the_others() {
    let mut world = World::new();
    world.name_installation("ns/gone");
    world.install("ns/rate", &old());
    world.converge();
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,rate"));
    let machine = world.machine();
    assert_eq!((&machine[0]["installation"], &machine[1]["installation"]), (&"ns/gone".into(), &"ns/rate".into()));
    assert_eq!((&machine[0]["configured"], &machine[1]["rolledOut"]), (&false.into(), &true.into()));
}

#[test]
fn a_record_that_somebody_edited_is_not_believed() {
    let mut world = World::new();
    world.install("other/rate", &old());
    world.converge();
    world.plugin("other/rate").installation = Lookup::Missing;
    let annotations = world.snapshot.children.deployments[0].object.metadata.annotations.as_mut().unwrap();
    let text = annotations.get_mut("weir.dev/decisions").unwrap();
    *text = text.replace(&old().hash, &content(&["rate"], "2.0.0").hash);
    let plan = world.dry();
    assert!(plan.findings.iter().any(|f| f.code == "DecisionsUnverified"), "{:?}", plan.findings);
    // Nor is anything taken out of running pods on a guess.
    assert_eq!(plan.holds[0].what, HeldPart::PodTemplate);
    assert!(plan.holds[0].message.contains("is not on record"), "{}", plan.holds[0].message);
    world.converge();
    assert!(world.mounts(&old()) && world.rolls == 1);
}
