//! Hooks hear of an object that this pass deletes, with operation delete. What they answer is looked at and not used: nothing is left to change,
//! and a hook that fails keeps nothing from being deleted. Where the DataPlane itself goes, garbage collection takes its objects and nobody is told.

use weir_api::keys;

use super::{
    super::plan::{Wanted, lookup, problems, prune, rollout::Rollout, takeover},
    Decided, Pass,
};
use crate::{
    plan::{Change, ChildKind, Object, Target},
    policy::{
        SlotName,
        object_hook::{Input, Operation},
    },
};

impl Pass<'_> {
    /// Asks every hook about every object that is not wanted any more.
    pub(super) async fn farewell(&self, decided: &mut Decided) {
        let hooks = &self.policies.object_hooks;
        for object in self.unwanted(decided) {
            let (kind, name) = (object.kind().api().1, object.meta().name.clone().unwrap_or_default());
            let input = Input::new(self.dp.context(), Operation::Delete, &object, &self.dp.manifest(), &hooks.paths);
            for hook in hooks.chain.iter().filter(|hook| !hook.name.is_empty()) {
                let reply = hook.chosen.ask(&input, |_| Ok(())).await;
                decided.policies.extend(reply.uses(SlotName::ObjectHook, &format!("{kind} {}/{name}", self.dp.namespace)));
                if let Err(unanswered) = reply.answer {
                    let message =
                        format!("hook {}: {kind} {name} is deleted, and the hook did not take note: {}", hook.name, unanswered.message);
                    decided.note("HookNotTold", &crate::policy::limits::cut_at(&message, 1_024));
                }
            }
        }
    }

    /// Live objects that this pass deletes, of the kinds that hooks see.
    fn unwanted(&self, decided: &Decided) -> Vec<Object> {
        let ingress = match lookup::ingress_service(self.dp) {
            lookup::Name::Use(name) => Some(name),
            lookup::Name::Wait(_) | lookup::Name::Taken(_) => None,
        };
        // Nothing is deleted then.
        if self.dp.annotation(keys::PAUSED) == Some("true") || takeover::kept_by(self.dp).is_some() {
            return Vec::new();
        }
        let holds = problems(self.dp).into_iter().chain(decided.holds.iter().cloned()).collect();
        let mut wanted = Wanted { changes: Vec::new(), holds, ingress, rollout: Rollout::None, events: Vec::new() };
        let deployment = lookup::live_deployment(self.dp).and_then(|live| live.object.metadata.name.clone());
        prune::prune(self.dp, decided, deployment.as_deref(), &mut wanted);
        let deleted = wanted.changes.iter().filter_map(|change| if let Change::Delete(target) = change { self.live(target) } else { None });
        deleted.collect()
    }

    fn live(&self, target: &Target) -> Option<Object> {
        let children = &self.dp.snapshot.children;
        macro_rules! find {
            ($all:ident, $variant:ident) => {{
                let found = children.$all.iter().find(|child| child.object.metadata.name.as_deref() == Some(target.name.as_str()));
                found.map(|child| Object::$variant(Box::new(child.object.clone())))
            }};
        }
        let mut object = match target.kind {
            ChildKind::Service => find!(services, Service),
            ChildKind::Deployment => find!(deployments, Deployment),
            ChildKind::HorizontalPodAutoscaler => find!(autoscalers, HorizontalPodAutoscaler),
            ChildKind::PodDisruptionBudget => find!(disruption_budgets, PodDisruptionBudget),
            ChildKind::Secret | ChildKind::Certificate | ChildKind::ConfigMap => None,
        }?;
        object.meta_mut().managed_fields = None;
        Some(object)
    }
}
