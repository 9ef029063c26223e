//! Whatever happens in whatever order: what answers was good once, the history is short, and each pass leaves things at rest (the world
//! checks rest, health and history after every pass).

use std::collections::BTreeSet;

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::json;
use weir_api::{
    keys,
    reconcile_policy::{RemoteSource, Strategy as Rollouts},
};
use weir_core::reconcile_policy::snapshot::{Found, Step, Work};

use crate::world::{STEPS, World, found};

/// Something that happens. Numbers choose among a few components, tags and settings.
#[derive(Debug, Clone)]
enum Event {
    Nothing,
    Busy(Step, Option<u8>),
    Failed(Step, bool, Option<u8>),
    Ready(u8),
    /// A component that was verified by rules of yesterday.
    Outdated(u8),
    Trip,
    Restart,
    Check,
    Pause(bool),
    Image(u8),
    Settings(u8),
    Limit(u8),
    Rules(u8),
    Manual(bool),
    Approve(u8, bool),
    Remote,
    NotRunning(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let few = || 0..4_u8;
    let step = || prop::sample::select(STEPS.to_vec());
    prop_oneof![
        1 => Just(Event::Nothing),
        3 => (step(), prop::option::of(few())).prop_map(|(step, layer)| Event::Busy(step, layer)),
        3 => (step(), any::<bool>(), prop::option::of(few())).prop_map(|(step, transient, layer)| Event::Failed(step, transient, layer)),
        8 => few().prop_map(Event::Ready),
        1 => few().prop_map(Event::Outdated),
        4 => Just(Event::Trip),
        1 => Just(Event::Restart),
        2 => Just(Event::Check),
        1 => any::<bool>().prop_map(Event::Pause),
        2 => few().prop_map(Event::Image),
        2 => (0..3_u8).prop_map(Event::Settings),
        1 => (0..5_u8).prop_map(Event::Limit),
        1 => (0..3_u8).prop_map(Event::Rules),
        1 => any::<bool>().prop_map(Event::Manual),
        2 => (few(), any::<bool>()).prop_map(|(layer, full)| Event::Approve(layer, full)),
        1 => Just(Event::Remote),
        1 => any::<bool>().prop_map(Event::NotRunning),
    ]
}

fn layer(number: u8) -> String {
    format!("sha256:{number}")
}

fn of(number: Option<u8>) -> Found {
    number.map_or_else(Found::default, |number| found(&layer(number)))
}

fn happen(world: &mut World, event: &Event) {
    match event {
        Event::Nothing => {}
        Event::Busy(next, number) => world.snapshot.work = Work::Busy { next: *next, found: of(*number) },
        Event::Failed(step, transient, number) => drop(world.fail(*step, *transient, of(*number))),
        Event::Ready(number) => drop(world.publish(&layer(*number))),
        Event::Outdated(number) => drop(world.ready(Found { verification: Some("sha256:yesterday".into()), ..found(&layer(*number)) })),
        Event::Trip if world.status().active.is_some() => drop(world.trip()),
        Event::Trip => {}
        Event::Restart => world.restart(),
        Event::Check => world.check(&world.now().to_string()),
        Event::Pause(on) => world.annotate(keys::PAUSED, &on.to_string()),
        Event::Image(number) => world.edit(|spec| {
            spec.source.remote = None;
            spec.source.oci.get_or_insert_default().image = format!("registry.example/env:{number}");
        }),
        Event::Settings(number) => world.settings(json!({"number": number})),
        Event::Limit(limit) => world.history_limit(i32::from(*limit)),
        Event::Rules(number) => {
            world.snapshot.verification = (*number > 0).then(|| format!("sha256:rules-{number}"));
            world.restart();
        }
        Event::Manual(manual) => world.edit(|spec| {
            spec.rollout.get_or_insert_default().strategy = Some(if *manual { Rollouts::Manual } else { Rollouts::Automatic });
        }),
        Event::Approve(number, full) => {
            let settings = world.settings_digest();
            let text = if *full { format!("{}/{settings}", layer(*number)) } else { layer(*number) };
            world.annotate(keys::APPROVED_DIGEST, &text);
        }
        Event::Remote => world.edit(|spec| (spec.source.oci, spec.source.remote) = (None, Some(RemoteSource { plugin_name: "p".into() }))),
        Event::NotRunning(on) => world.snapshot.not_running = on.then(|| "it is being compiled".into()),
    }
}

type Key = (String, String);

fn key(revision: &weir_api::reconcile_policy::Revision) -> Key {
    (revision.layer_digest.clone(), revision.settings_digest.clone())
}

/// What holds between two passes.
fn check(before: &World, after: &World, ready: &BTreeSet<Key>) -> Result<(), TestCaseError> {
    let (old, new) = (before.status(), after.status());
    let Some(active) = new.active.as_ref() else { return Ok(()) };
    prop_assert!(ready.contains(&key(active)), "it never was ready: {active:?}");
    prop_assert!(active.settings.is_some() && active.limits.is_some(), "it has what it runs with");
    if old.active.as_ref().map(key) == Some(key(active)) {
        return Ok(());
    }
    let former: Vec<_> = old.history.iter().flatten().collect();
    let was = former.iter().find(|former| key(former) == key(active));
    let asked = matches!(&after.snapshot.work, Work::Ready { found, .. } if found.layer_digest.as_ref() == Some(&active.layer_digest))
        && active.settings_digest == after.settings_digest();
    if asked {
        return Ok(());
    }
    // Nobody asks for it now: it was good, its signatures are those that are wanted, and its settings were kept.
    let was = was.ok_or_else(|| TestCaseError::fail("it comes from nowhere"))?;
    let away = matches!(&after.snapshot.work, Work::Failed { failure, .. } if failure.step == Step::Resolved && failure.transient);
    let reasons: &[&str] = if away { &["Superseded", "Removed"] } else { &["Superseded"] };
    prop_assert!(reasons.contains(&was.reason.as_deref().unwrap_or_default()), "{was:?}");
    // A remote plugin has nothing that could be signed, so nothing is wanted of what stands in for it.
    let wanted = after.snapshot.verification.as_ref().filter(|_| after.snapshot.policy.spec.source.oci.is_some());
    prop_assert_eq!(was.verification.as_ref(), wanted);
    prop_assert!(was.settings.is_some());
    Ok(())
}

#[test]
fn what_answers_was_good_once() {
    let mut runner = TestRunner::new(Config { cases: 512, failure_persistence: None, ..Config::default() });
    let happened = runner.run(&prop::collection::vec(event(), 1..40), |all| {
        let (mut world, mut ready) = (World::new(), BTreeSet::new());
        for event in &all {
            let before = world.clone();
            if let Event::Ready(number) = event {
                ready.insert((layer(*number), world.settings_digest()));
            }
            happen(&mut world, event);
            world.pass();
            check(&before, &world, &ready)?;
        }
        Ok(())
    });
    happened.unwrap();
}
