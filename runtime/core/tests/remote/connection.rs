//! What the connection says, and who hears of it.

use weir_core::remote::{Facts, Reason, Report, reason::Step};

use super::world::{World, events};

fn failing(reason: Reason) -> Report {
    Report::Failing { reason, message: "it went wrong".into() }
}

#[test]
fn before_it_was_dialled_it_is_neither_reachable_nor_told() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    let plan = world.pass();
    assert_eq!((world.said("a", "Reachable").0.as_str(), world.ready("a").as_str()), ("False/Connecting", "False/Connecting"));
    assert_eq!((world.configured("a").as_str(), events(&plan, "a").len()), ("True/Configured", 0));
}

#[test]
fn a_plugin_that_answers_is_ready_and_told_once() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    world.answers("p", "1.2");
    assert_eq!(events(&world.pass(), "a"), ["PluginReady"]);
    assert_eq!(events(&world.pass(), "a"), [""; 0]);
    let message = world.said("a", "Ready").1;
    assert!(message.contains("version 1.2") && message.contains("sha256:p-1.2") && message.contains("konnect-env"), "{message}");
}

#[test]
fn every_reason_of_the_connection_stands_at_its_step_and_is_told_once() {
    let of_connection = Reason::ALL.into_iter().filter(|r| r.step() >= Step::Reachable && *r != Reason::Connecting);
    for reason in of_connection {
        let mut world = World::with();
        world.snapshot.reports.insert("p".into(), failing(reason));
        let plan = world.pass();
        let word = format!("False/{}", reason.as_str());
        let reachable = if reason.step() == Step::Reachable { word.as_str() } else { "True/Reachable" };
        assert_eq!((world.said("a", "Reachable").0.as_str(), world.ready("a")), (reachable, word.clone()));
        assert_eq!(events(&plan, "a"), [reason.as_str()]);
        // Other words for the same are no news.
        world.snapshot.reports.insert("p".into(), Report::Failing { reason, message: "again".into() });
        let again = world.pass();
        assert_eq!((events(&again, "a").len(), again.services[0].changed), (0, false));
        assert!(plan.standings["p"].ready.as_ref().is_err_and(|problem| problem.reason == reason));
        world.answers("p", "1");
        assert_eq!(events(&world.pass(), "a"), ["PluginReady"]);
    }
}

#[test]
fn without_a_ready_pod_the_reason_is_that_whatever_the_connection_says() {
    let mut world = World::with();
    world.pods("a", &[("10.1.0.1", false)]);
    let plan = world.pass();
    assert_eq!((world.ready("a").as_str(), events(&plan, "a")), ("False/NoEndpoints", vec!["NoEndpoints".to_owned()]));
    assert_eq!(plan.plugins.len(), 1);
    world.pods("a", &[("10.1.0.1", true)]);
    world.pass();
    assert_eq!(world.ready("a"), "True/Ready");
}

#[test]
fn a_plugin_that_calls_itself_otherwise_is_not_asked() {
    let mut world = World::with();
    let facts = Facts { name: "other".into(), ..Facts::default() };
    world.snapshot.reports.insert("p".into(), Report::Ready(facts));
    let plan = world.pass();
    assert_eq!((world.ready("a").as_str(), world.said("a", "Reachable").0.as_str()), ("False/NameMismatch", "True/Reachable"));
    assert!(world.said("a", "Ready").1.contains("\"other\"") && plan.standings["p"].ready.is_err());
}

#[test]
fn a_condition_keeps_its_time_while_its_status_does() {
    let time = |world: &World| {
        let conditions = world.snapshot.services[0].status.clone().unwrap().conditions.unwrap();
        conditions.into_iter().find(|c| c.type_ == "weir.dev/Ready").unwrap().last_transition_time
    };
    let mut world = World::with();
    let before = time(&world);
    world.later(jiff::SignedDuration::from_secs(60));
    world.answers("p", "2");
    world.pass();
    assert_eq!(time(&world), before);
    world.snapshot.reports.insert("p".into(), failing(Reason::Unreachable));
    world.pass();
    assert_ne!(time(&world), before);
}
