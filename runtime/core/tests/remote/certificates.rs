//! Secrets that are missing, malformed or at their end: what was good before stays until it ends.

use jiff::SignedDuration;
use weir_core::remote::{
    Report,
    snapshot::{Certificates, SecretFacts, Validity},
};

use super::world::{World, days, events, key, of, secret, spec};

#[test]
fn each_secret_that_is_missing_is_named() {
    for (name, event) in [("client", "ClientSecretNotFound"), ("server", "ServerSecretNotFound")] {
        let mut world = World::new();
        world.service("a", "p", "2025-01-01T00:00:00Z");
        world.snapshot.secrets.remove(&key(name));
        let plan = world.pass();
        assert_eq!((world.configured("a").as_str(), world.ready("a").as_str()), ("False/SecretMissing", "False/SecretMissing"));
        let message = world.said("a", "Configured").1;
        assert!(
            message.contains(&format!("weir-system/{name}")) && message.contains(&format!("weir.dev/plugin-{name}-secret")),
            "{message}"
        );
        assert_eq!((events(&plan, "a"), plan.plugins.len()), (vec![event.to_owned()], 0));
    }
}

#[test]
fn each_key_that_is_malformed_is_named() {
    let bad = || Err("it holds no certificate in PEM form".to_owned());
    let mut cases: Vec<(&str, &str, &str, SecretFacts)> = Vec::new();
    let good = secret(World::new().snapshot.now, 30);
    cases.push(("client", "tls.crt", "InvalidClientCertificate", SecretFacts { certificates: bad(), ..good.clone() }));
    cases.push(("client", "tls.key", "InvalidClientCertificate", SecretFacts { key: Err("of another issue".into()), ..good.clone() }));
    cases.push(("server", "tls.crt", "InvalidServerCertificate", SecretFacts { certificates: bad(), ..good.clone() }));
    cases.push(("server", "ca.crt", "InvalidServerCertificate", SecretFacts { authorities: Some(bad()), ..good.clone() }));
    for (name, field, event, facts) in cases {
        let mut world = World::new();
        world.service("a", "p", "2025-01-01T00:00:00Z");
        world.snapshot.secrets.insert(key(name), facts);
        let plan = world.pass();
        let (configured, message) = world.said("a", "Configured");
        assert_eq!((configured.as_str(), events(&plan, "a")), ("False/CertInvalid", vec![event.to_owned()]), "{name} {field}");
        assert!(message.contains(field) && message.contains(&format!("weir-system/{name}")), "{message}");
    }
}

#[test]
fn a_server_secret_needs_no_key_and_its_ca_counts() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    let now = world.snapshot.now;
    let ca =
        Certificates { digest: "sha256:ca".into(), validity: vec![Validity { begins: now, ends: now.checked_add(days(900)).unwrap() }] };
    let facts = SecretFacts { key: Err("there is none".into()), ..secret(now, 30) };
    world.snapshot.secrets.insert(key("server"), facts.clone());
    let without = spec(&world.pass(), "p").unwrap().server.clone();
    world.snapshot.secrets.insert(key("server"), SecretFacts { authorities: Some(Ok(ca)), ..facts });
    let with = spec(&world.pass(), "p").unwrap().server.clone();
    assert_ne!(without.digest, with.digest);
    assert_eq!((with.ends, with.renew_by), (now.checked_add(days(900)).unwrap(), without.renew_by));
}

#[test]
fn old_and_new_side_by_side_are_good_until_the_later_ends() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    let now = world.snapshot.now;
    let mut facts = secret(now, 5);
    facts.certificates.as_mut().unwrap().validity.push(Validity { begins: now, ends: now.checked_add(days(50)).unwrap() });
    world.snapshot.secrets.insert(key("server"), facts);
    assert_eq!(spec(&world.pass(), "p").unwrap().server.ends, now.checked_add(days(50)).unwrap());
}

#[test]
fn a_certificate_that_has_ended_or_not_begun_is_not_used() {
    for name in ["client", "server"] {
        let mut world = World::new();
        world.service("a", "p", "2025-01-01T00:00:00Z");
        let now = world.snapshot.now;
        world.snapshot.secrets.insert(key(name), secret(now, 0));
        let plan = world.pass();
        assert_eq!((world.configured("a").as_str(), plan.plugins.len()), ("False/CertExpired", 0), "{name}");
        assert!(world.said("a", "Configured").1.contains(&format!("the {name} certificate")));
        let later = Validity { begins: now.checked_add(days(1)).unwrap(), ends: now.checked_add(days(9)).unwrap() };
        let mut facts = secret(now, 9);
        facts.certificates.as_mut().unwrap().validity = vec![later];
        world.snapshot.secrets.insert(key(name), facts);
        world.pass();
        assert_eq!(world.configured("a"), "False/CertInvalid");
        assert!(world.said("a", "Configured").1.contains("valid only from"));
    }
}

#[test]
fn bad_input_keeps_what_was_good_until_its_certificate_ends_and_follows_the_pods() {
    type Break = fn(&mut World);
    let breaks: [Break; 4] = [
        |world| drop(world.snapshot.secrets.remove(&key("server"))),
        |world| world.snapshot.secrets.get_mut(&key("client")).unwrap().key = Err("of another issue".into()),
        |world| world.annotate("a", "weir.dev/plugin-port", Some("none")),
        |world| world.annotate("a", "weir.dev/plugin-client-secret", None),
    ];
    for broken in breaks {
        let mut world = World::with();
        let before = spec(&world.pass(), "p").unwrap().clone();
        broken(&mut world);
        world.pods("a", &[("10.1.0.9", true)]);
        let plan = world.pass();
        let kept = spec(&plan, "p").unwrap();
        assert_eq!((&kept.client, &kept.server, kept.port), (&before.client, &before.server, before.port));
        assert_ne!(kept.endpoints, before.endpoints);
        assert_eq!(world.ready("a"), "True/Ready");
        let (configured, message) = world.said("a", "Configured");
        assert!(configured.starts_with("False/") && message.contains("stays in use until 2026-03-02"), "{message}");
        // The server's certificate ends first.
        world.later(days(60));
        let plan = world.pass();
        assert_eq!((plan.plugins.len(), world.ready("a").starts_with("False/")), (0, true));
    }
}

#[test]
fn what_was_good_for_one_service_is_not_for_another_of_the_name() {
    let mut world = World::with();
    world.edit("a", |service| service.metadata.uid = Some("another".into()));
    world.snapshot.secrets.clear();
    assert_eq!(world.pass().plugins, []);
}

#[test]
fn a_secret_that_comes_back_is_used_at_once() {
    let mut world = World::with();
    let facts = world.snapshot.secrets.remove(&key("server")).unwrap();
    world.pass();
    world.snapshot.secrets.insert(key("server"), SecretFacts { ..secret(world.snapshot.now, 70) });
    let plan = world.pass();
    assert_eq!(world.configured("a"), "True/Configured");
    assert_ne!(spec(&plan, "p").unwrap().server.digest, spec_digest(&facts));
}

fn spec_digest(facts: &SecretFacts) -> String {
    facts.certificates.as_ref().unwrap().digest.clone()
}

#[test]
fn the_end_of_a_certificate_is_told_at_14_days_at_3_and_at_0() {
    let mut world = World::with();
    let ends = world.snapshot.now.checked_add(days(60)).unwrap();
    assert_eq!(world.pass().again, Some(ends.checked_sub(days(14)).unwrap()));
    let mut told = Vec::new();
    for (day, again) in [(46, days(3)), (57, days(0))] {
        world.snapshot.now = "2026-01-01T00:00:00Z".parse().unwrap();
        world.later(days(day));
        let plan = world.pass();
        let event = of(&plan, "a").events.iter().find(|e| e.reason == "PluginCertificateEnds").unwrap().clone();
        assert!(event.data.contains("server certificate in Secret weir-system/server"), "{event:?}");
        told.push(event.data);
        assert_eq!(plan.again, Some(ends.checked_sub(again).unwrap()), "day {day}");
        // The same words until the next time: it is told once.
        world.later(SignedDuration::from_hours(1));
        assert_eq!(of(&world.pass(), "a").events[0].data, told[told.len() - 1]);
    }
    assert_ne!(told[0], told[1]);
    world.later(days(10));
    let plan = world.pass();
    assert_eq!((world.configured("a").as_str(), plan.plugins.len()), ("False/CertExpired", 0));
    assert!(events(&plan, "a").contains(&"CertExpired".to_owned()));
}

#[test]
fn a_report_does_not_hide_that_the_settings_are_broken() {
    let mut world = World::new();
    world.service("a", "p", "2025-01-01T00:00:00Z");
    world.snapshot.reports.insert("p".into(), Report::Connecting);
    world.snapshot.secrets.clear();
    let plan = world.pass();
    assert!(plan.standings["p"].ready.is_err());
    assert_eq!(world.ready("a"), "False/SecretMissing");
}
