//! Whom a plugin wakes that changed: the policies that name it, and what they answer for.

use std::{collections::BTreeMap, time::Duration};

use weir_core::{
    policy::selection::{Entry, ObjectKind},
    remote::{Facts, Reason, Standing, Tenants},
};

use crate::{
    cache::{Cached, Key},
    context::Context,
    reconcile_policy::place,
};

/// Objects of a plugin that is back come within this time, and not all at once: it has just begun.
const SPREAD: Duration = Duration::from_secs(10);

/// Looks at what depends on plugins that are other than they were.
pub(super) fn changed(context: &Context, before: &BTreeMap<String, Standing>, after: &BTreeMap<String, Standing>) {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<&String> = names.filter(|name| essence(before.get(*name)) != essence(after.get(*name))).collect();
    changed.sort();
    changed.dedup();
    for name in changed {
        let digest = |all: &BTreeMap<String, Standing>| all.get(name).and_then(|s| s.ready.as_ref().ok()).map(|facts| facts.digest.clone());
        let back = digest(after).is_some() && digest(after) != digest(before);
        policies(context, name, back);
    }
}

/// What of it matters to others: in which words a connection fails does not.
fn essence(standing: Option<&Standing>) -> Option<(&Tenants, Result<&Facts, Reason>)> {
    standing.map(|standing| (&standing.tenants, standing.ready.as_ref().map_err(|problem| problem.reason)))
}

fn policies(context: &Context, plugin: &str, back: bool) {
    for policy in context.world.policies.all() {
        if policy.spec.source.remote.as_ref().is_none_or(|remote| remote.plugin_name != plugin) {
            continue;
        }
        let key = Key::of(&policy.metadata);
        context.policies.works.retry(&key);
        context.policies.queue.now(key);
        if let (true, Ok(entry)) = (back, Entry::new(&policy, true)) {
            objects(context, &entry);
        }
    }
}

/// What had no answer for want of the plugin.
fn objects(context: &Context, entry: &Entry) {
    for object in context.world.data_planes.all() {
        let place = place(context, ObjectKind::DataPlane, Cached::meta(&*object));
        if context.policies.book.would_answer(entry, &place) {
            context.data_planes.queue.spread(place.key, SPREAD);
        }
    }
    for object in context.world.installations.all() {
        let place = place(context, ObjectKind::PluginInstallation, Cached::meta(&*object));
        if context.policies.book.would_answer(entry, &place) {
            context.installations.queue.spread(place.key, SPREAD);
        }
    }
}
