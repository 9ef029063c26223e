//! What a pass wants: plugins for the registry, conditions and events for their Services, and a time to look again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    Facts, Key, Reason, Snapshot, Spec, Standing,
    decide::{Endpoints, Fate, Plugin},
    reason::Problem,
    snapshot::Report,
    status,
};
use crate::events::Event;

/// How long before the end of a certificate somebody is told, days.
const NOTICES: [i64; 3] = [14, 3, 0];

/// What is said on one Service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServicePlan {
    /// The Service.
    pub service: Key,
    /// Its UID.
    pub uid: String,
    /// Name of the plugin, for who reads metrics.
    pub plugin: String,
    /// Our conditions; those of others are not among them, and are never touched.
    pub conditions: Vec<Condition>,
    /// Whether they differ from the live ones.
    pub changed: bool,
    /// Events.
    pub events: Vec<Event>,
}

/// What a pass wants.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// What is dialled, by name.
    pub plugins: Vec<Spec>,
    /// What is said on the labelled Services.
    pub services: Vec<ServicePlan>,
    /// Services that were plugins and are none any more: our conditions go.
    pub cleared: Vec<Key>,
    /// How each plugin stands, for the policies that name it.
    pub standings: BTreeMap<String, Standing>,
    /// When something is due that no watch tells.
    pub again: Option<Timestamp>,
}

/// Plans.
#[must_use]
pub fn plan(snapshot: &Snapshot, decided: &[Plugin<'_>]) -> Plan {
    let mut plan = Plan::default();
    for plugin in decided {
        let notices = plugin.spec().map(|spec| notices(spec, snapshot.now)).unwrap_or_default();
        plan.again = plan.again.into_iter().chain(notices.again).min();
        plan.plugins.extend(plugin.spec().cloned());
        let stands = stands(snapshot, plugin);
        plan.services.push(status::service(snapshot, plugin, &stands, notices.events));
        if !matches!(plugin.fate, Fate::Refused(_)) {
            let standing = Standing { ready: stands, tenants: plugin.validated.tenants.clone() };
            plan.standings.insert(plugin.validated.name.to_owned(), standing);
        }
    }
    let there: BTreeSet<&Key> = plan.services.iter().map(|service| &service.service).collect();
    plan.cleared = snapshot.told.iter().filter(|key| !there.contains(key)).cloned().collect();
    plan
}

/// Whether the plugin can be asked. One whose settings are broken goes on with what was good.
fn stands(snapshot: &Snapshot, plugin: &Plugin<'_>) -> Result<Facts, Problem> {
    let report = snapshot.reports.get(plugin.validated.name).cloned().unwrap_or_default();
    match &plugin.fate {
        Fate::Refused(problem) | Fate::Broken { problem, kept: None } => Err(problem.clone()),
        Fate::Broken { problem: _, kept: Some(spec) } => reported(spec, report),
        Fate::Configured(spec) => reported(spec, report),
    }
}

fn reported(spec: &Spec, report: Report) -> Result<Facts, Problem> {
    let (ns, name) = &spec.service;
    if spec.endpoints == Endpoints::Pods(Vec::new()) {
        let message = format!(
            "no pod of Service {ns}/{name} is ready: look at the pods that its selector selects; one that waits for a leader's lease never is"
        );
        return Err(Problem::new(Reason::NoEndpoints, message));
    }
    match report {
        Report::Ready(facts) if facts.name != spec.name => {
            let message = format!(
                "the plugin calls itself {:?} and its Service is labelled {:?}: change the label, or run the plugin that is meant",
                crate::policy::limits::cut(&facts.name),
                spec.name
            );
            Err(Problem::new(Reason::NameMismatch, message))
        }
        Report::Ready(facts) => Ok(facts),
        Report::Connecting => Err(Problem::new(Reason::Connecting, "it has not been dialled yet")),
        Report::Failing { reason, message } => Err(Problem::new(reason, message)),
    }
}

#[derive(Default)]
struct Notices {
    events: Vec<Event>,
    again: Option<Timestamp>,
}

/// What is said about the ends of certificates, and when something else is.
fn notices(spec: &Spec, now: Timestamp) -> Notices {
    let mut notices = Notices::default();
    for (side, material) in [("client", &spec.client), ("server", &spec.server)] {
        let ends = material.renew_by;
        let due = |days: i64| ends.checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MIN);
        let (namespace, name) = &material.secret;
        // The last one that is due: three texts, so that each is told once.
        let passed = NOTICES.iter().filter(|days| due(**days) <= now).min();
        notices.events.extend(passed.map(|days| {
            let when = if *days == 0 { "ended".to_owned() } else { format!("ends within {days} days,") };
            let data = format!("the {side} certificate in Secret {namespace}/{name} {when} at {ends}: renew it");
            Event::warning("PluginCertificateEnds", "A certificate of a remote plugin ends", data)
        }));
        let hard = [material.ends].into_iter();
        let later = NOTICES.iter().map(|days| due(*days)).chain(hard).filter(|at| *at > now);
        notices.again = notices.again.into_iter().chain(later).min();
    }
    notices
}
