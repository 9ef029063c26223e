//! Swaps under load: a hundred of them while two hundred DataPlanes converge, and not one pass fails.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;

use super::{active, gateways, hybrid, image, is_active, policy_with, push, variant};
use crate::kube::{
    api::{DATA_PLANE, POLICY},
    labs::{Lab, lab},
    plugins::shop::Shop,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-load", load)]
}

const GATEWAYS: usize = 200;
const SWAPS: usize = 100;
/// Components that take turns; four of them are always kept, so that some swaps are to a cached one and some are not.
const COMPONENTS: usize = 8;

async fn load(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let pushed: Vec<_> = (0..COMPONENTS).map(|n| push(&shop, "konnect", &format!("v{n}"), &variant("konnect-env", n))).collect();
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let still = json!({"spec": {"rollout": {"resync": "0s"}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "v0"), still)).await;
    active(&system, "konnect", &pushed[0].layer).await;
    gateways(ns, &[]).await;
    for number in 0..GATEWAYS {
        ns.apply(&hybrid(&format!("gw-{number}"))).await;
    }
    ns.all_ready(GATEWAYS, Duration::from_secs(240)).await;
    let before = operator.metrics().await;
    let (mut fresh, mut cached) = (Vec::new(), Vec::new());
    for swap in 1..=SWAPS {
        let next = swap % COMPONENTS;
        // Somebody works meanwhile.
        for number in 0..4 {
            let name = format!("gw-{}", (swap * 4 + number) % GATEWAYS);
            ns.edit(DATA_PLANE, &name, json!({"metadata": {"labels": {"turn": swap.to_string()}}})).await;
        }
        let begun = Instant::now();
        system.edit(POLICY, "konnect", image(&shop.image("konnect", &format!("v{next}")))).await;
        system
            .eventually(Duration::from_secs(20), "it is in force", async || {
                is_active(&system.get(POLICY, "konnect").await?, &pushed[next].layer)
            })
            .await;
        if swap < COMPONENTS { fresh.push(begun.elapsed()) } else { cached.push(begun.elapsed()) }
    }
    ns.all_ready(GATEWAYS, Duration::from_secs(60)).await;
    let after = operator.metrics().await;
    let failed = |outcome: &str| {
        let of = |m: &crate::kube::install::Metrics| m.sum("weir_reconcile_total", &[("kind", "DataPlane"), ("outcome", outcome)]);
        of(&after) - of(&before)
    };
    assert!(failed("Failed").abs() < f64::EPSILON, "{} passes failed", failed("Failed"));
    let trouble = ["Deadline", "Memory", "Trap", "Unavailable", "BadOutput", "Incompatible"];
    let unanswered: f64 = trouble.iter().map(|outcome| after.sum("weir_policy_calls_total", &[("outcome", outcome)])).sum();
    assert!(unanswered.abs() < f64::EPSILON, "{unanswered} questions were not answered");
    for times in [&mut fresh, &mut cached] {
        times.sort();
    }
    eprintln!(
        "     policies load: new component p50 {:?}, worst {:?}; cached p50 {:?}, worst {:?}",
        fresh[fresh.len() / 2],
        fresh[fresh.len() - 1],
        cached[cached.len() / 2],
        cached[cached.len() - 1]
    );
}
