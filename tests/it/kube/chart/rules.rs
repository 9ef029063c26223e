//! Each rule of the one list is needed: without it the API server refuses something that the operator asks for.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_api::rbac::{CLUSTER, KONG_LEASE, OWN_NAMESPACE, Rule};

use super::{
    Bed, NAMESPACE, RELEASE, bed,
    life::{inner, operator, release, system},
};
use crate::kube::{
    api::{self, CLUSTER_ROLE, DATA_PLANE, EXTENSION, Kind, MERGE, POLICY, ROLE},
    audit::{Audit, lines},
    install::Running,
    shape::{extension, holds, merge, tls_secret},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![bed("rules: without any one of them something is refused", each)]
}

/// Rules that nothing asks for on this API server, and why.
const NOT_ASKED: [(&str, &str, &str); 4] = [
    ("dataplanes/finalizers", "update", "the admission plugin OwnerReferencesPermissionEnforcement is off by default"),
    ("certificates", "create", "cert-manager is not installed, so no Certificate is ever written"),
    ("tokenreviews", "create", "only --snapshot-bind-address asks, and the lab `kube recordings` does that with these rights"),
    ("subjectaccessreviews", "create", "only --snapshot-bind-address asks, and the lab `kube recordings` does that with these rights"),
];

const REFUSED: Duration = Duration::from_secs(30);

fn asked_here(rule: &Rule) -> bool {
    !NOT_ASKED.iter().any(|(resource, verb, _)| rule.resources.contains(resource) && rule.verbs.first() == Some(verb))
}

async fn each(bed: Bed) {
    release(&bed, &["upgrade", "--install"], "default");
    let (ns, system) = (&bed.ns, system(&bed));
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("api", "client")).await;
    let scaling = json!({"horizontal": {"minReplicas": 1, "maxReplicas": 3}});
    let mut object = inner("gw");
    merge(
        &mut object,
        json!({"spec": {
            "deployment": {"scaling": scaling},
            "resources": {"podDisruptionBudget": {"spec": {"maxUnavailable": 1}}}
        }}),
    );
    ns.apply(&object).await;
    system
        .apply(&json!({"apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": "conflicts"},
                       "spec": {"slot": "ConflictResolution", "source": {"builtin": {}}}}))
        .await;
    let mut operator = operator(&bed).await;
    ns.ready("gw", crate::kube::ns::READY).await;
    operator.stop(Duration::from_secs(20));

    let cluster: Vec<Rule> = CLUSTER.into_iter().chain([KONG_LEASE]).collect();
    for (kind, name, rules) in [(CLUSTER_ROLE, "weir:weir-system", cluster), (ROLE, RELEASE, OWN_NAMESPACE.to_vec())] {
        for (number, rule) in rules.iter().filter(|rule| asked_here(rule)).enumerate() {
            let others: Vec<Value> = rules.iter().filter(|other| *other != rule).map(|other| other.to_json()).collect();
            grant(&bed, kind, name, &others).await;
            without(&bed, kind, number, rule).await;
        }
        grant(&bed, kind, name, &rules.iter().map(|rule| rule.to_json()).collect::<Vec<_>>()).await;
    }
    bed.helm.ok(&["uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "180s"]);
}

/// Sets the rules of a role.
async fn grant(bed: &Bed, kind: Kind, name: &str, rules: &[Value]) {
    let path = format!("{}/{name}?fieldManager=test", kind.path(NAMESPACE));
    api::call(&bed.cluster.client, "PATCH", &path, MERGE, &json!({"rules": rules})).await.map_err(String::from).unwrap();
    // Authorizers learn of it by a watch.
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// Runs the operator without a rule, gives it something to do everywhere, and waits until it is refused what the rule allows.
async fn without(bed: &Bed, kind: Kind, number: usize, rule: &Rule) {
    let (ns, system) = (&bed.ns, system(bed));
    let audit: Audit = ns.audit().await;
    // Only the rule about the Lease needs an election; the others need no wait for one.
    let elect = (kind == ROLE).to_string();
    let running = Running::start(&bed.cluster, &bed.installation, "weir", &["--leader-election-id", RELEASE, "--leader-elect", &elect]);
    ns.logs.lock().unwrap().push(running.log_file().to_owned());
    let turn = i64::try_from(number % 2).unwrap();
    ns.edit(
        DATA_PLANE,
        "gw",
        json!({"spec": {
            "deployment": {"scaling": {"horizontal": {"maxReplicas": 4 + turn}}, "labels": {"turn": turn.to_string()}},
            "network": {"services": {"ingress": {"labels": {"turn": turn.to_string()}}}},
            "resources": {"podDisruptionBudget": {"spec": {"maxUnavailable": 2 + turn}}}
        }}),
    )
    .await;
    ns.edit(EXTENSION, "api", json!({"metadata": {"annotations": {"weir.dev/check-at": format!("{number}-{}", rule.why)}}})).await;
    ns.edit(EXTENSION, "api", json!({"spec": {"controlPlaneRegion": if turn == 0 { "eu" } else { "us" }}})).await;
    system.edit(POLICY, "conflicts", json!({"spec": {"priority": 1 + turn}})).await;
    ns.edit(DATA_PLANE, "gw", json!({"metadata": {"annotations": {"weir.dev/check-at": number.to_string()}}})).await;
    system.edit(POLICY, "conflicts", json!({"metadata": {"annotations": {"weir.dev/check-at": number.to_string()}}})).await;
    let user = bed.installation.user_name("weir");
    ns.eventually(REFUSED, &format!("something is refused without {:?} on {:?} ({})", rule.verbs, rule.resources, rule.why), async || {
        let refused: Vec<_> = audit.asked().await.into_iter().filter(|asked| asked.user == user && asked.code == 403).collect();
        let is_it =
            refused.iter().any(|asked| rule.resources.contains(&asked.resource.as_str()) && rule.verbs.contains(&asked.verb.as_str()));
        holds(is_it, || format!("refused was:\n{}", lines(&refused)))
    })
    .await;
}
