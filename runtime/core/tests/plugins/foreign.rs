//! `weir.dev/rollout: Manual`: each sort of change from elsewhere waits, and what the owner does meanwhile goes on.

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::{plan::ChildKind, policy::conflict_resolution::Verdict};

use crate::{
    policies::{content, environment, unavailable, verdicts},
    support::{annotation, steps},
    world::World,
};

/// A change that is not the owner's.
struct Foreign {
    what: &'static str,
    make: fn(&mut World),
    /// The difference as the message names it.
    named: &'static str,
    /// What it must not say.
    value: &'static str,
}

/// Everything a pod template is made of besides its spec: a plugin, an extension with its certificate, and a conflict.
pub(crate) fn hybrid() -> World {
    let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_NGINX_WORKER_PROCESSES", "value": "7"}]});
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}));
    world.annotate(keys::ROLLOUT, "Manual");
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.extend();
    let plan = world.converge();
    assert!(steps(&plan).contains(&("create", ChildKind::Deployment)), "a first creation waits for nobody");
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "False/NothingHeld"));
    assert_eq!(world.env("KONG_NGINX_WORKER_PROCESSES").as_deref(), Some("7"));
    world
}

fn all() -> Vec<Foreign> {
    vec![
        Foreign {
            what: "plugin",
            make: |w| w.publish("ns/rate", &content(&["rate"], "2.0.0")),
            named: "volume plugin-rate changed",
            value: "VERSION",
        },
        Foreign {
            what: "policy",
            make: |w| w.konnect = environment("k2", Some("value-of-extra")),
            named: "env KONG_EXTRA added",
            value: "value-of-extra",
        },
        Foreign {
            what: "verdict",
            make: |w| w.conflicts = verdicts("c2", |_| Verdict::Keep(1)),
            named: "env KONG_NGINX_WORKER_PROCESSES changed",
            value: "\"2\"",
        },
        Foreign { what: "extension", make: |w| w.region("eu"), named: "env KONG_CLUSTER_CONTROL_PLANE changed", value: ".eu." },
        Foreign {
            what: "client certificate",
            make: |w| w.client_certificate("sha256:client-2"),
            named: "annotation weir.dev/konnect-certificate-digest changed",
            value: "client-2",
        },
        Foreign {
            what: "certificate authority",
            make: |w| w.snapshot.operator.ca.digest = "sha256:ca-2".into(),
            named: "volume admin certificate changed",
            value: "ca-2",
        },
        Foreign { what: "operator version", make: World::another_version, named: "env KONG_PORT_MAPS added", value: "8443" },
    ]
}

/// A hybrid world in which a change waits.
fn waiting(foreign: &Foreign) -> World {
    let mut world = hybrid();
    (foreign.make)(&mut world);
    world.converge();
    world
}

fn image(world: &World) -> Option<&str> {
    world.template().spec.as_ref()?.containers[0].image.as_deref()
}

#[test]
fn it_waits_and_says_what_differs() {
    for foreign in all() {
        let what = foreign.what;
        let mut world = hybrid();
        (foreign.make)(&mut world);
        let (rolls, before, hash) = (world.rolls, world.template().clone(), world.hash());
        let plan = world.converge();
        assert_eq!((world.rolls, world.template(), world.hash()), (rolls, &before, hash.clone()), "{what}");
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{what}");
        let message = world.said("RolloutHeld").2;
        assert!(message.contains(&format!("waits ({})", foreign.named)), "{what}: {message}");
        assert!(message.contains(&format!("annotation weir.dev/approved-rollout: {}", world.pending())), "{what}: {message}");
        assert!(message.ends_with(&format!("the pod template in force is {hash}")), "{what}: {message}");
        assert!(!message.contains(foreign.value), "no value: {what}: {message}");
        assert_ne!(world.pending(), hash, "{what}");
        assert!(plan.events.iter().any(|e| e.reason == "ForeignChange" && e.data.contains(foreign.named)), "{what}");
        assert!(!steps(&plan).iter().any(|(step, _)| ["mint", "provide"].contains(step)), "{what}: nothing is made for what waits");
        assert_eq!((world.word("Ready").as_str(), world.word("PoliciesApplied").as_str()), ("True/Ready", "True/Applied"), "{what}");
    }
}

#[test]
fn scaling_and_services_do_not_wait() {
    for foreign in all() {
        let what = foreign.what;
        let mut world = waiting(&foreign);
        let (rolls, hash, pending) = (world.rolls, world.hash(), world.pending());
        world.scale(4);
        world.edit(|spec| {
            spec.network = serde_json::from_value(json!({"services": {"ingress": {"type": "ClusterIP"}}})).unwrap();
        });
        let plan = world.converge();
        assert_eq!(steps(&plan), [("update", ChildKind::Service), ("update", ChildKind::Deployment)], "{what}");
        assert_eq!(world.live().spec.as_ref().unwrap().replicas, Some(4), "{what}");
        assert_eq!((world.rolls, world.hash(), world.pending()), (rolls, hash, pending), "{what}");
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{what}");
    }
}

#[test]
fn exactly_what_was_approved_goes() {
    for foreign in all() {
        let what = foreign.what;
        let mut world = waiting(&foreign);
        let (rolls, pending) = (world.rolls, world.pending());
        world.annotate(keys::APPROVED_ROLLOUT, "sha256:another");
        world.converge();
        assert_eq!(world.rolls, rolls, "{what}");
        let message = world.said("RolloutHeld").2;
        assert!(message.contains("names \"sha256:another\", which does not wait, and changes nothing"), "{what}: {message}");
        assert_eq!(world.pending(), pending, "{what}");

        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!((world.rolls, world.hash()), (rolls + 1, pending), "{what}");
        assert_eq!(world.word("RolloutHeld"), "False/NothingHeld", "{what}");
        assert!(!world.said("RolloutHeld").2.contains("sha256:"), "{what}");
    }
}

#[test]
fn an_own_edit_goes_without_it() {
    for foreign in all() {
        let what = foreign.what;
        if what == "operator version" {
            continue;
        }
        let mut world = waiting(&foreign);
        let (rolls, before, pending) = (world.rolls, world.template().clone(), world.pending());
        world.image("kong:3.10");
        world.converge();
        assert_eq!((world.rolls, image(&world)), (rolls + 1, Some("kong:3.10")), "{what}");
        let mut as_before = world.template().clone();
        as_before.spec.as_mut().unwrap().containers[0].image = Some("kong:3.9".into());
        assert_eq!(as_before, before, "{what}: all else as it was");
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{what}");
        assert_ne!(world.pending(), pending, "{what}: the pending template has the new image too");
        assert!(world.said("RolloutHeld").2.contains(&format!("waits ({})", foreign.named)), "{what}: {}", world.said("RolloutHeld").2);
        assert_eq!(annotation(world.live(), keys::ROLLED_GENERATION), world.snapshot.data_plane.metadata.generation.map(|g| g.to_string()));

        // The old approval is of no use, the new one is.
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!(world.rolls, rolls + 1, "{what}");
        let pending = world.pending();
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!((world.rolls, image(&world)), (rolls + 2, Some("kong:3.10")), "{what}");
        assert_eq!(world.word("RolloutHeld"), "False/NothingHeld", "{what}");
    }
}

#[test]
fn an_own_edit_and_a_change_from_elsewhere_in_one_pass() {
    for foreign in all() {
        let what = foreign.what;
        if what == "operator version" {
            continue;
        }
        let mut world = hybrid();
        let before = world.template().clone();
        (foreign.make)(&mut world);
        world.image("kong:3.10");
        world.pass();
        let mut as_before = world.template().clone();
        as_before.spec.as_mut().unwrap().containers[0].image = Some("kong:3.9".into());
        assert_eq!((world.rolls, as_before), (2, before), "{what}");
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{what}");
        world.converge();
        assert_eq!(world.rolls, 2, "{what}");
    }
}

#[test]
fn without_the_annotation_it_goes() {
    for foreign in all() {
        let what = foreign.what;
        let mut world = waiting(&foreign);
        let (rolls, pending) = (world.rolls, world.pending());
        world.unannotate(keys::ROLLOUT);
        world.converge();
        assert_eq!((world.rolls, world.hash()), (rolls + 1, pending), "{what}");
        assert_eq!(world.condition("RolloutHeld"), None, "{what}");
        assert_eq!(annotation(world.live(), keys::ROLLED_GENERATION), None, "{what}");
    }
}

#[test]
fn what_is_taken_back_waits_no_more() {
    let mut world = hybrid();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.publish("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "False/NothingHeld"));
}

#[test]
fn a_further_change_makes_an_old_approval_stale() {
    let mut world = hybrid();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    let first = world.pending();
    world.annotate(keys::APPROVED_ROLLOUT, &first);
    world.region("eu");
    world.converge();
    assert_eq!(world.rolls, 1);
    assert_ne!(world.pending(), first, "the hash covers all that waits");
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("env KONG_CLUSTER_CONTROL_PLANE changed, volume plugin-rate changed"), "{message}");
    assert!(message.contains(&format!("names {first:?}, which does not wait")), "{message}");
}

#[test]
fn an_approval_that_was_used_lets_nothing_else_go() {
    let mut world = hybrid();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    let pending = world.pending();
    world.annotate(keys::APPROVED_ROLLOUT, &pending);
    world.converge();
    assert_eq!(world.rolls, 2);
    world.publish("ns/rate", &content(&["rate"], "3.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "True/ForeignChange"));
    assert!(world.said("RolloutHeld").2.contains("changes nothing"));
}

#[test]
fn what_another_version_renders_rides_along_and_is_named() {
    let foreign = all().pop().unwrap();
    let mut world = waiting(&foreign);
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.image("kong:3.10");
    let plan = world.pass();
    let rode: Vec<&str> = plan.events.iter().filter(|e| e.reason == "ChangeRodeAlong").map(|e| e.data.as_str()).collect();
    assert_eq!(rode, [format!("operator {}", world.snapshot.operator.version)]);
    assert!(world.env("KONG_PORT_MAPS").is_some());
    assert!(world.mounts(&content(&["rate"], "1.0.0")), "what can be told apart waits");
    world.converge();
    assert_eq!(world.word("RolloutHeld"), "True/ForeignChange");
    assert_eq!(annotation(world.live(), keys::OPERATOR_VERSION), Some(world.snapshot.operator.version.clone()));
}

#[test]
fn scaling_under_another_version_rolls_nothing() {
    let mut world = hybrid();
    world.name_installation("ns/later");
    world.converge();
    world.another_version();
    world.converge();
    assert_eq!(world.word("RolloutHeld"), "True/ForeignChange");
    let rolls = world.rolls;
    for replicas in [4, 5] {
        // A plugin that the owner has named and that is not there yet makes no difference.
        world.scale(replicas);
        let plan = world.converge();
        assert_eq!((world.rolls, world.live().spec.as_ref().unwrap().replicas), (rolls, Some(replicas)));
        assert!(!plan.events.iter().any(|e| e.reason == "ChangeRodeAlong"), "{:?}", plan.events);
    }
    world.edit(|spec| {
        let scaling = json!({"horizontal": {"maxReplicas": 9}});
        spec.deployment.as_mut().unwrap().replicas = None;
        spec.deployment.as_mut().unwrap().scaling = Some(serde_json::from_value(scaling).unwrap());
    });
    assert_eq!(steps(&world.dry()), [("create", ChildKind::HorizontalPodAutoscaler)]);
}

#[test]
fn verdicts_on_what_the_owner_writes_now_ride_along_and_are_named() {
    let mut world = hybrid();
    world.conflicts = verdicts("c2", |_| Verdict::Keep(1));
    world.converge();
    world.edit(|spec| {
        let pod = spec.deployment.as_mut().unwrap().pod_template_spec.as_mut().unwrap();
        pod.spec.as_mut().unwrap().containers[0].env.as_mut().unwrap()[0].value = Some("9".into());
    });
    let plan = world.pass();
    let rode: Vec<&str> = plan.events.iter().filter(|e| e.reason == "ChangeRodeAlong").map(|e| e.data.as_str()).collect();
    assert_eq!(rode, ["policy conflict-resolution c2"]);
    assert_eq!(world.env("KONG_NGINX_WORKER_PROCESSES").as_deref(), Some("2"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"));
}

#[test]
fn the_answers_in_force_stay_on_record() {
    let mut world = hybrid();
    let before = world.decisions();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.konnect = environment("k2", Some("x"));
    world.image("kong:3.10");
    world.converge();
    assert_eq!(world.decisions(), before);

    // They are what a failing policy leaves in force.
    world.konnect = unavailable("k2");
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_EXTRA")), (2, None));
    assert_eq!(world.word("PoliciesApplied"), "False/Unavailable");
    world.konnect = environment("k2", Some("x"));
    world.converge();
    assert!(world.said("RolloutHeld").2.contains("env KONG_EXTRA added"));
}

#[test]
fn a_restart_by_hand_and_a_webhooks_variable_are_nobodys_change() {
    let mut world = hybrid();
    let live = &mut world.snapshot.children.deployments[0].object;
    let template = serde_json::to_value(&live.spec.as_ref().unwrap().template).unwrap();
    live.metadata.managed_fields = Some(vec![
        serde_json::from_value(json!({"manager": "weir", "operation": "Apply", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:template": fields(&template)}}}))
        .unwrap(),
    ]);
    let spec = live.spec.as_mut().unwrap();
    let meta = spec.template.metadata.get_or_insert_default();
    meta.annotations.get_or_insert_default().insert("kubectl.kubernetes.io/restartedAt".into(), "2026-01-01T00:00:00Z".into());
    let env = spec.template.spec.as_mut().unwrap().containers[0].env.as_mut().unwrap();
    env.push(serde_json::from_value(json!({"name": "INJECTED", "value": "by a webhook"})).unwrap());
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.pass();
    assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-rate changed)"), "{}", world.said("RolloutHeld").2);
}

/// What `metadata.managedFields` says of somebody who applied all of this.
fn fields(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten().map(|(key, value)| (format!("f:{key}"), fields(value)));
    let named = value.as_array().filter(|items| items.iter().all(|item| item.get("name").is_some()));
    let items = named.into_iter().flatten().map(|item| (format!("k:{}", json!({"name": item["name"]})), fields(item)));
    members.chain(items).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn text_that_means_the_same_quantity_is_another_text() {
    let mut world = World::new();
    world.annotate(keys::ROLLOUT, "Manual");
    world.extend();
    world.konnect = environment("k1", Some("1"));
    world.converge();
    world.konnect = environment("k2", Some("1000m"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "True/ForeignChange"));
    assert!(world.said("RolloutHeld").2.contains("waits (env KONG_EXTRA changed)"), "{}", world.said("RolloutHeld").2);
}
