//! What a policy in shadow mode says differently is on its object, as a condition and once as an event.

use weir_api::reconcile_policy::{Mode, Shadow};
use weir_core::{
    policy::difference::Difference,
    reconcile_policy::snapshot::{Compared, Sample},
};

use crate::world::{World, events, pair};

fn shadow() -> World {
    let mut world = World::new();
    world.edit(|spec| spec.mode = Some(Mode::Shadow));
    world.publish("sha256:a");
    world
}

fn compared(evaluated: i64, difference: Option<Difference>) -> Option<Compared> {
    let counts = Shadow { evaluated, differing: i64::from(difference.is_some()), ..Shadow::default() };
    Some(Compared { counts, sample: difference.map(|difference| Sample { object: "DataPlane ns/gw".into(), difference }) })
}

fn fields() -> Difference {
    Difference::Fields { paths: vec!["env[KONG_ROLE].value".into(), "volumes".into()], more: 3 }
}

#[test]
fn what_differs_is_a_condition_with_a_reason_and_one_event() {
    let mut world = shadow();
    assert_eq!(world.is("ShadowDiffers"), pair("False", "NotAsked"));
    world.snapshot.shadow = compared(1, None);
    world.pass();
    assert_eq!(world.is("ShadowDiffers"), pair("False", "Agrees"));
    for (difference, reason, text) in [
        (fields(), "Differs", "it says something else about env[KONG_ROLE].value, volumes and 3 more fields"),
        (Difference::Answers, "Differs", "it answers, where the policy in force does not"),
        (Difference::Refuses("No".into()), "Refuses", "it refuses (No), where the policy in force does not"),
        (Difference::Fails("Trap"), "Fails", "it gives no answer (Trap)"),
    ] {
        world.snapshot.shadow = compared(2, Some(difference));
        let plan = world.pass();
        let message = format!("DataPlane ns/gw: {text}");
        assert_eq!(world.said("ShadowDiffers"), ("True".into(), reason.into(), message.clone()));
        assert_eq!(events(&plan), ["ShadowDiffers"]);
        assert_eq!((plan.events[0].message.as_str(), &plan.events[0].data), ("A policy in shadow mode says something else", &message));
        assert_eq!((world.health().as_str(), world.is("Active")), ("Ready/Ready", pair("False", "Shadow")), "nobody is hurt by it");
    }
    world.snapshot.shadow.as_mut().unwrap().counts.evaluated = 9;
    let plan = world.pass();
    assert_eq!((plan.events.len(), world.status().shadow.unwrap().evaluated), (0, 9), "a number is no news");
}

#[test]
fn a_restart_forgets_nothing_and_another_revision_begins_anew() {
    let mut world = shadow();
    world.snapshot.shadow = compared(2, Some(fields()));
    world.pass();
    world.restart();
    for empty in [None, compared(0, None)] {
        world.snapshot.shadow = empty;
        let plan = world.pass();
        assert_eq!((world.is("ShadowDiffers"), plan.events.len()), (pair("True", "Differs"), 0));
    }
    world.publish("sha256:b");
    assert_eq!(world.is("ShadowDiffers"), pair("False", "NotAsked"));
}

#[test]
fn a_policy_that_answers_has_no_such_condition() {
    let mut world = shadow();
    world.snapshot.shadow = compared(2, Some(fields()));
    world.pass();
    world.edit(|spec| spec.mode = None);
    world.snapshot.shadow = None;
    world.publish("sha256:a");
    assert_eq!((world.condition("ShadowDiffers"), world.is("Active")), (None, pair("True", "Active")));
}

#[test]
fn the_gravest_difference_is_shown_and_of_those_the_first() {
    let mut compared = Compared::default();
    for (object, difference) in [
        ("a", fields()),
        ("b", Difference::Answers),
        ("c", Difference::Refuses("No".into())),
        ("d", fields()),
        ("e", Difference::Fails("Trap")),
        ("f", Difference::Fails("Memory")),
    ] {
        compared.differs(Sample { object: object.into(), difference });
        let shown = &compared.sample.as_ref().unwrap().object;
        let expected = match object {
            "a" | "b" => "a",
            "c" | "d" => "c",
            _ => "e",
        };
        assert_eq!(shown, expected);
    }
}
