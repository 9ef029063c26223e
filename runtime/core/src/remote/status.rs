//! What is said on the Service of a plugin: four conditions of ours, up to the first that is not true, and Ready always.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use weir_api::condition::types;

use super::{
    Facts, Snapshot,
    decide::{Fate, Material, Plugin},
    plan::ServicePlan,
    reason::{Problem, Step},
    shown,
};
use crate::{
    conditions::{self, Said, say},
    events::Event,
};

/// Every condition type of ours on a Service.
pub(super) const OURS: [&str; 4] = [types::PLUGIN_DISCOVERED, types::PLUGIN_CONFIGURED, types::PLUGIN_REACHABLE, types::PLUGIN_READY];

/// What is said on one Service. `expiry` are the events about its certificates.
pub(super) fn service(snapshot: &Snapshot, plugin: &Plugin<'_>, stands: &Result<Facts, Problem>, expiry: Vec<Event>) -> ServicePlan {
    let object = plugin.validated.service;
    let live: Vec<Condition> = object.status.iter().flat_map(|s| s.conditions.iter().flatten()).filter(|c| is_ours(c)).cloned().collect();
    let said = said(plugin, &worded(stands, &live));
    let conditions = conditions::merge(live.clone(), said, &OURS, object.metadata.generation, snapshot.now);
    let mut events = news(plugin, stands, &live);
    events.extend(expiry);
    if let Some(problem) = &plugin.validated.tenants_problem {
        events.push(Event::warning("InvalidTenants", "Nobody but the operator's own namespace may use the plugin", problem.clone()));
    }
    let changed = !same(&live, &conditions);
    ServicePlan {
        service: plugin.validated.key.clone(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
        plugin: plugin.validated.name.to_owned(),
        conditions,
        changed,
        events,
    }
}

/// A connection fails in other words at each try, and each of them would be a write: as long as the reason is the same, the first words stand.
fn worded(stands: &Result<Facts, Problem>, live: &[Condition]) -> Result<Facts, Problem> {
    let problem = match stands {
        Ok(facts) => return Ok(facts.clone()),
        Err(problem) => problem,
    };
    let same = |c: &&Condition| c.type_ == types::PLUGIN_READY && c.status == "False" && c.reason == problem.reason.as_str();
    let before = live.iter().find(same).filter(|_| problem.reason.step() >= Step::Reachable);
    Err(before.map_or_else(|| problem.clone(), |before| Problem { message: before.message.clone(), ..problem.clone() }))
}

fn is_ours(condition: &Condition) -> bool {
    OURS.contains(&condition.type_.as_str())
}

/// In any order: who keeps the list decides about that.
fn same(live: &[Condition], wanted: &[Condition]) -> bool {
    live.len() == wanted.len() && wanted.iter().all(|condition| live.contains(condition))
}

fn said(plugin: &Plugin<'_>, stands: &Result<Facts, Problem>) -> Vec<Said> {
    let mut said = Vec::new();
    let no = |type_, problem: &Problem, more: &str| say(type_, false, problem.reason.as_str(), format!("{}{more}", problem.message));
    match &plugin.fate {
        Fate::Refused(problem) => said.push(no(types::PLUGIN_DISCOVERED, problem, "")),
        Fate::Broken { problem, kept } => {
            said.push(discovered(plugin));
            let more = match kept {
                Some(spec) => format!("; what was good before stays in use until {}", spec.client.ends.min(spec.server.ends)),
                None => String::new(),
            };
            said.push(no(types::PLUGIN_CONFIGURED, problem, &more));
        }
        Fate::Configured(spec) => {
            said.push(discovered(plugin));
            let side = |what: &str, material: &Material| format!("{what} Secret {} until {}", shown(&material.secret), material.renew_by);
            said.push(say(
                types::PLUGIN_CONFIGURED,
                true,
                "Configured",
                format!("{}, {}", side("server", &spec.server), side("client", &spec.client)),
            ));
        }
    }
    if plugin.spec().is_some() {
        match stands {
            Err(problem) if problem.reason.step() < Step::Ready => said.push(no(types::PLUGIN_REACHABLE, problem, "")),
            Ok(_) | Err(_) => said.push(say(types::PLUGIN_REACHABLE, true, "Reachable", "")),
        }
    }
    said.push(match stands {
        Ok(facts) => say(types::PLUGIN_READY, true, "Ready", about(facts)),
        Err(problem) => no(types::PLUGIN_READY, problem, ""),
    });
    said
}

fn discovered(plugin: &Plugin<'_>) -> Said {
    say(types::PLUGIN_DISCOVERED, true, "Discovered", format!("this Service is plugin {}", plugin.validated.name))
}

/// The plugin's own words are cut: it is not trusted.
fn about(facts: &Facts) -> String {
    let slots: Vec<&str> = facts.slots.iter().map(|slot| slot.as_str()).collect();
    let serves = if slots.is_empty() { String::new() } else { format!("; it serves {}", slots.join(", ")) };
    format!("version {}, digest {}{serves}", crate::policy::limits::cut(&facts.version), facts.digest)
}

/// What a person should hear: a plugin that became ready, and one that no longer is or is not for another reason than before. The words of
/// a failing connection differ from try to try, so the reason decides whether it is news.
fn news(plugin: &Plugin<'_>, stands: &Result<Facts, Problem>, live: &[Condition]) -> Vec<Event> {
    let before = live.iter().find(|c| c.type_ == types::PLUGIN_READY);
    let name = plugin.validated.name;
    let mut events = Vec::new();
    if let Fate::Refused(problem) | Fate::Broken { problem, kept: _ } = &plugin.fate {
        events.push(Event::warning(problem.event, "The remote plugin cannot be used as it is set up", problem.message.clone()));
    }
    match stands {
        Ok(facts) => {
            if before.is_none_or(|c| c.status != "True") {
                events.push(Event::normal("PluginReady", "A remote plugin is ready", format!("{name} {}", about(facts))));
            }
        }
        Err(problem) => {
            let known = before.is_some_and(|c| c.status == "False" && c.reason == problem.reason.as_str());
            // Nothing has been tried yet, or it was told above.
            let waits = problem.reason == super::Reason::Connecting || problem.reason.step() < Step::Reachable;
            if !known && !waits {
                let data = format!("{name}: {}", problem.message);
                events.push(Event::warning(problem.event, "A remote plugin does not answer", data));
            }
        }
    }
    events
}
