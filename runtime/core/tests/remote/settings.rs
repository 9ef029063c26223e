//! What a Service has to say, and where its plugin is dialled.

use std::net::IpAddr;

use serde_json::json;
use weir_core::remote::{Tenants, decide::Endpoints};

use super::world::{World, events, slice, spec};
use crate::world::key;

fn pods(all: &[(&str, u16)]) -> Endpoints {
    Endpoints::Pods(all.iter().map(|(address, port)| (address.parse::<IpAddr>().unwrap(), *port)).collect())
}

#[test]
fn each_annotation_that_is_needed_is_named_with_the_cure() {
    for annotation in ["weir.dev/plugin-port", "weir.dev/plugin-client-secret", "weir.dev/plugin-server-secret"] {
        for value in [None, Some(""), Some("  ")] {
            let mut world = World::new();
            world.service("a", "p", "2025-01-01T00:00:00Z");
            world.annotate("a", annotation, value);
            let plan = world.pass();
            assert_eq!((world.configured("a").as_str(), plan.plugins.len()), ("False/AnnotationMissing", 0), "{annotation} {value:?}");
            assert!(world.said("a", "Configured").1.contains(annotation));
            assert_eq!(events(&plan, "a"), ["AnnotationMissing"]);
        }
    }
}

#[test]
fn a_port_is_a_number_and_one_of_the_services() {
    for port in ["grpc", "0", "65536", "-1", "+9090", "90 90", "9091"] {
        let mut world = World::new();
        world.service("a", "p", "2025-01-01T00:00:00Z");
        world.annotate("a", "weir.dev/plugin-port", Some(port));
        let plan = world.pass();
        assert_eq!(
            (world.configured("a").as_str(), events(&plan, "a")),
            ("False/InvalidPort", vec!["InvalidPortAnnotation".to_owned()]),
            "{port}"
        );
    }
}

#[test]
fn a_server_name_is_a_host_name() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    world.annotate("a", "weir.dev/plugin-server-name", Some("not a name"));
    world.pass();
    assert_eq!(world.configured("a"), "False/InvalidServerName");
    world.annotate("a", "weir.dev/plugin-server-name", Some("plugin.example"));
    let plan = world.pass();
    assert_eq!(spec(&plan, "p").unwrap().server_name.as_deref(), Some("plugin.example"));
}

#[test]
fn ready_pods_are_dialled_at_the_port_behind_the_services() {
    let mut world = World::with();
    world.pods("a", &[("10.1.0.2", true), ("10.1.0.3", false), ("10.1.0.1", true)]);
    let plan = world.pass();
    assert_eq!(spec(&plan, "p").unwrap().endpoints, pods(&[("10.1.0.1", 9091), ("10.1.0.2", 9091)]));
    // A pod of two families is one pod.
    let mut six = slice("a", &[("fd00::1", true)]);
    six.address_type = "IPv6".into();
    world.snapshot.slices.as_mut().unwrap().get_mut(&key("a")).unwrap().push(six);
    assert_eq!(spec(&world.pass(), "p").unwrap().endpoints, pods(&[("10.1.0.1", 9091), ("10.1.0.2", 9091)]));
}

#[test]
fn a_headless_service_is_dialled_at_the_port_itself() {
    let mut world = World::with();
    world.edit("a", |service| {
        service.spec = serde_json::from_value(json!({"clusterIP": "None", "selector": {"app": "p"}})).unwrap();
    });
    assert_eq!(spec(&world.pass(), "p").unwrap().endpoints, pods(&[("10.1.0.1", 9090)]));
}

#[test]
fn by_name_is_dialled_what_has_no_slices_and_everything_where_they_cannot_be_read() {
    let mut world = World::with();
    world.snapshot.slices = None;
    assert_eq!(spec(&world.pass(), "p").unwrap().endpoints, Endpoints::Dns);
    let mut world = World::with();
    world.edit("a", |service| {
        service.spec = serde_json::from_value(json!({"type": "ExternalName", "externalName": "plugin.example"})).unwrap();
    });
    assert_eq!(spec(&world.pass(), "p").unwrap().endpoints, Endpoints::Dns);
}

#[test]
fn who_may_use_a_plugin_is_nobody_everybody_or_a_list() {
    let only = |all: &[&str]| Tenants::Only(all.iter().map(|one| (*one).to_owned()).collect());
    for (text, tenants) in [("", Tenants::None), ("*", Tenants::All), (" a , b,", only(&["a", "b"]))] {
        assert_eq!(Tenants::parse(text), Ok(tenants), "{text}");
    }
    for text in ["A", "a b", "a,*", "a/b"] {
        assert!(Tenants::parse(text).is_err(), "{text}");
    }
    let mut world = World::with();
    world.annotate("a", "weir.dev/plugin-tenants", Some("Team A"));
    let plan = world.pass();
    assert_eq!((&plan.standings["p"].tenants, world.ready("a").as_str()), (&Tenants::None, "True/Ready"));
    assert_eq!(events(&plan, "a"), ["InvalidTenants"]);
}

#[test]
fn conditions_of_others_are_not_touched() {
    let mut world = World::with();
    let theirs = json!({"type": "example.com/Fine", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z"});
    world.edit("a", |service| {
        service.status.get_or_insert_default().conditions.get_or_insert_default().push(serde_json::from_value(theirs).unwrap());
    });
    let plan = world.pass();
    assert!(!plan.services[0].changed && plan.services[0].conditions.iter().all(|c| c.type_.starts_with("weir.dev/")));
}
