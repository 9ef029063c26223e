//! Hostile components in force, each for an object of its own: the others get their answers, and the process stays as it is.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;

use super::{ACTIVE, active, gateways, hybrid, policy_with, push, variant};
use crate::kube::{
    api::{DATA_PLANE, POLICY},
    labs::{Lab, lab},
    ns::READY,
    plugins::shop::Shop,
    shape::{condition, holds, merge, name_of},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-hostile", hostile)]
}

/// What each ends in, in the words of conditions.
const GUESTS: [(&str, &str); 6] = [
    ("endless-loop", "Deadline"),
    ("memory-grower", "Memory"),
    ("trap", "Trap"),
    ("garbage-output", "BadOutput"),
    ("giant-output", "Memory"),
    ("deep-recursion", "Trap"),
];
const GOOD: usize = 20;

async fn hostile(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    for (number, (guest, _)) in GUESTS.iter().enumerate() {
        let pushed = push(&shop, "hostile", guest, &variant(&format!("hostile-{guest}"), number));
        // Only the one that never ends is about time; a busy machine decides nothing about the others.
        let timeout = if *guest == "endless-loop" { "200ms" } else { "5s" };
        let targets = json!({"spec": {"targets": {"selector": {"matchLabels": {"guest": guest}}}, "limits": {"timeout": timeout}}});
        system.apply(&policy_with(guest, &shop.image("hostile", guest), targets)).await;
        // There is nothing yet that it could be tried on.
        active(&system, guest, &pushed.layer).await;
    }
    let resident = |m: &crate::kube::install::Metrics| m.sum("process_resident_memory_bytes", &[]);
    let before = resident(&operator.metrics().await);
    gateways(ns, &[]).await;
    for (guest, _) in GUESTS {
        let mut object = hybrid(guest);
        merge(&mut object, json!({"metadata": {"labels": {"guest": guest}}}));
        ns.apply(&object).await;
    }
    for number in 0..GOOD {
        ns.apply(&hybrid(&format!("good-{number}"))).await;
    }
    // Probes are answered all the while.
    let mut slowest = Duration::ZERO;
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let (code, text) = operator.probe("/readyz").await.unwrap();
        slowest = slowest.max(asked.elapsed());
        assert_eq!(code, 200, "{text}");
        let all = ns.list(DATA_PLANE, "").await.unwrap();
        let ready = |o: &&serde_json::Value| condition(o, "Ready").is_some_and(|c| c["status"] == "True");
        let good = all.iter().filter(|o| name_of(o).starts_with("good-")).filter(ready).count();
        if good == GOOD {
            break;
        }
        assert!(begun.elapsed() < READY, "{good} of {GOOD} are ready");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for (guest, reason) in GUESTS {
        ns.eventually(ACTIVE, &format!("{guest} ends in {reason}"), async || {
            let object = ns.get(DATA_PLANE, guest).await?;
            let said = condition(&object, "PoliciesApplied").cloned().unwrap_or_default();
            // Asked again, it is put aside: the condition says how it failed first.
            let word = if said["reason"] == "Unavailable" { said["message"].to_string() } else { said["reason"].to_string() };
            holds(said["status"] == "False" && !word.is_empty(), || format!("{:#}", object["status"]))
        })
        .await;
        system
            .eventually(ACTIVE, &format!("{guest} is told"), async || {
                let object = system.get(POLICY, guest).await?;
                let stalled = condition(&object, "Stalled").cloned().unwrap_or_default();
                holds(stalled["status"] == "True" && stalled["reason"] == reason, || format!("{:#}", object["status"]))
            })
            .await;
    }
    let grown = resident(&operator.metrics().await) - before;
    eprintln!("     policies hostile: slowest probe {slowest:?}, memory grown by {:.0} MiB", grown / f64::from(1 << 20));
    assert!(slowest < Duration::from_secs(1), "a probe took {slowest:?}");
    assert!(grown < f64::from(160 << 20), "memory grew by {grown} bytes");
    assert!(operator.metrics().await.sum("weir_leader", &[]) > 0.5, "the Lease was never late");
}
