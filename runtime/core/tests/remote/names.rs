//! A name belongs to one Service.

use serde_json::json;
use weir_core::remote::{MAX_PLUGINS, reconcile};

use super::world::{World, events, key, spec};

#[test]
fn of_two_services_with_one_name_the_oldest_has_it_and_the_other_says_so() {
    let mut world = World::with();
    world.service("b", "p", "2025-02-01T00:00:00Z");
    let plan = world.pass();
    assert_eq!(plan.plugins.len(), 1);
    assert_eq!(spec(&plan, "p").unwrap().service, key("a"));
    assert_eq!(world.said("b", "Discovered").0, "False/Conflict");
    let message = world.said("b", "Discovered").1;
    assert!(message.contains("weir-system/a") && message.contains("another name"), "{message}");
    assert_eq!((world.ready("b").as_str(), world.ready("a").as_str()), ("False/Conflict", "True/Ready"));
    assert_eq!((events(&plan, "b"), events(&plan, "a")), (vec!["Conflict".to_owned()], vec![]));
    // What is said of steps that were not reached would be a guess.
    assert_eq!((world.configured("b"), world.said("b", "Reachable").0), (String::new(), String::new()));
    // Nothing of the other one is in the standing that policies read.
    assert_eq!(plan.standings["p"].ready.as_ref().unwrap().version, "1");
}

#[test]
fn a_broken_service_keeps_its_name_from_a_younger_one() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    world.annotate("a", "weir.dev/plugin-port", Some("x"));
    world.service("b", "p", "2025-02-01T00:00:00Z");
    let plan = world.pass();
    assert_eq!(plan.plugins, []);
    assert_eq!((world.configured("a").as_str(), world.said("b", "Discovered").0.as_str()), ("False/InvalidPort", "False/Conflict"));
}

#[test]
fn the_other_takes_over_when_the_oldest_goes_or_is_going() {
    let mut world = World::with();
    world.service("b", "p", "2025-02-01T00:00:00Z");
    world.pass();
    world.edit("a", |service| service.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let plan = world.pass();
    assert_eq!(spec(&plan, "p").unwrap().service, key("b"));
    world.snapshot.services.retain(|service| service.metadata.name.as_deref() == Some("b"));
    let plan = world.pass();
    assert_eq!(spec(&plan, "p").unwrap().service, key("b"));
    assert_eq!(world.ready("b"), "True/Ready");
}

#[test]
fn a_new_label_leaves_nothing_under_the_former_name() {
    let mut world = World::with();
    world.label("a", "q");
    let plan = world.pass();
    let names: Vec<&str> = plan.plugins.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!((names, plan.standings.keys().cloned().collect::<Vec<_>>()), (vec!["q"], vec!["q".to_owned()]));
    // It has not been dialled under its new name.
    assert_eq!(world.ready("a"), "False/Connecting");
}

#[test]
fn a_label_that_is_removed_ends_the_plugin_and_takes_our_conditions_along() {
    let mut world = World::with();
    world.snapshot.services.clear();
    let plan = reconcile(&world.snapshot);
    assert_eq!((plan.plugins, plan.cleared, plan.standings.len()), (vec![], vec![key("a")], 0));
}

#[test]
fn an_empty_label_is_no_name() {
    let mut world = World::new();
    world.service("a", "", "2025-01-01T00:00:00Z");
    world.pass();
    assert_eq!(world.said("a", "Discovered").0, "False/InvalidName");
}

#[test]
fn more_plugins_than_are_served_are_told_and_the_oldest_count() {
    let mut world = World::new();
    for n in 0..=MAX_PLUGINS {
        world.service(&format!("s{n}"), &format!("p{n}"), &format!("2025-01-01T{:02}:{:02}:00Z", n / 60, n % 60));
    }
    let plan = world.pass();
    assert_eq!(plan.plugins.len(), MAX_PLUGINS);
    assert_eq!(world.said(&format!("s{MAX_PLUGINS}"), "Discovered").0, "False/TooMany");
}

#[test]
fn labels_of_cnpg_count_only_where_that_is_wanted_and_ours_come_first() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    world.edit("a", |service| {
        let metadata = &mut service.metadata;
        metadata.labels = Some([("cnpg.io/pluginName".to_owned(), "c.example".to_owned())].into());
        let annotations = [("pluginPort", "9090"), ("pluginClientSecret", "client"), ("pluginServerSecret", "server")];
        metadata.annotations = Some(annotations.into_iter().map(|(k, v)| (format!("cnpg.io/{k}"), v.to_owned())).collect());
    });
    assert_eq!(reconcile(&world.snapshot).services, []);
    world.snapshot.cnpg = true;
    let plan = world.pass();
    assert_eq!(spec(&plan, "c.example").unwrap().port, 9090);
    world.label("a", "p");
    let plan = world.pass();
    assert_eq!(plan.plugins, []);
    assert_eq!(world.configured("a"), "False/AnnotationMissing");
    assert!(world.said("a", "Configured").1.contains("weir.dev/plugin-port"));
}
