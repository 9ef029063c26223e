//! Slot object-hook: what the objects of this pass have besides. Each rendered object goes through the chain, hook by hook; a hook that gives no
//! accepted patch leaves its last one in force, and without one the object is held as it is in the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::{Deserialize, Serialize};

use super::{
    super::objects::rendered::{self, Rendered},
    Decided, Pass, ask_about,
    conflicts::asked,
};
use crate::{
    decisions::Record,
    hash,
    plan::{HeldPart, Object},
    policy::{
        Identity, ObjectHook, SlotName, limits,
        object_hook::{Hook, Input, Operation},
    },
};

/// Largest record of patches, bytes of its JSON: the answers of the other slots have to find room beside it.
const MAX_RECORD: usize = 48 << 10;
/// Longest message of one hold, characters.
const MAX_MESSAGE: usize = 1_024;

/// Patches in force: name of the hook, then the part of the DataPlane.
pub(super) type Patches = BTreeMap<String, Patch>;

/// What one hook said, per object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Patch {
    /// Who said it.
    policy: Identity,
    /// The patch of each part.
    parts: BTreeMap<HeldPart, String>,
}

/// What the chain made of the objects.
#[derive(Default)]
pub(super) struct Chain {
    patches: Patches,
    questions: Vec<String>,
}

impl Pass<'_> {
    /// Fills `decided.hooked`.
    pub(super) async fn hooks(&mut self, decided: &mut Decided) {
        let leaves = self.dp.snapshot.data_plane.metadata.deletion_timestamp.is_some() || self.dp.holds(HeldPart::Everything);
        if self.policies.object_hooks.chain.is_empty() || leaves {
            return;
        }
        decided.has_hooks = true;
        let mut chain = Chain::default();
        for Rendered { part, object, operation } in rendered::all(self.dp, decided, self.live) {
            let asked = Asked { part, operation };
            if let Some(after) = self.through(asked, object.clone(), &mut chain, decided).await {
                decided.hooked.insert(part, (object, after));
            }
        }
        self.keep_patches(chain, decided);
        self.farewell(decided).await;
    }

    /// The pod template of an own change, after the hooks. None when one of them holds it.
    pub(super) async fn hooked_again(
        &mut self,
        template: PodTemplateSpec,
        quiet: &mut Decided,
        rides: &mut Vec<String>,
    ) -> Option<PodTemplateSpec> {
        if self.policies.object_hooks.chain.is_empty() {
            return Some(template);
        }
        let Some(Rendered { part, object, operation }) = rendered::deployment(self.dp, template.clone(), self.live) else {
            return Some(template);
        };
        let before = self.last_patches(quiet);
        let mut chain = Chain::default();
        let after = self.through(Asked { part, operation }, object, &mut chain, quiet).await?;
        // A patch is made for one rendering, so a hook that is new cannot be separated from the owner's change.
        let is_new = |hook: &&Hook| before.get(&hook.name).is_none_or(|patch| patch.policy != *hook.chosen.identity());
        let new = self.policies.object_hooks.chain.iter().filter(is_new);
        rides.extend(new.map(|hook| format!("policy {} {} {}", SlotName::ObjectHook, hook.name, hook.chosen.identity().digest)));
        self.keep_patches(chain, quiet);
        match after {
            Object::Deployment(deployment) => deployment.spec.map(|spec| spec.template),
            Object::Service(_)
            | Object::HorizontalPodAutoscaler(_)
            | Object::PodDisruptionBudget(_)
            | Object::Certificate(_)
            | Object::ConfigMap(_) => None,
        }
    }

    /// The object after all hooks. None when it is held.
    async fn through(&mut self, asked: Asked, object: Object, chain: &mut Chain, decided: &mut Decided) -> Option<Object> {
        let policies = self.policies;
        let mut object = object;
        for hook in &policies.object_hooks.chain {
            object = self.hook(hook, asked, &object, chain, decided).await?;
        }
        Some(object)
    }

    async fn hook(&mut self, hook: &Hook, asked: Asked, object: &Object, chain: &mut Chain, decided: &mut Decided) -> Option<Object> {
        let hooks = &self.policies.object_hooks;
        let input = Input::new(self.dp.context(), asked.operation, object, &self.dp.manifest(), &hooks.paths);
        let name = object.meta().name.clone().unwrap_or_default();
        let about = format!("{} {}/{name}", input.kind, self.dp.namespace);
        let reply = ask_about::<ObjectHook>(&about, &hook.chosen, &input, decided, |_| Ok(())).await;
        // Not the whole question: the record must not change because an object exists by now.
        chain.questions.push(hash::digest(input.object.as_bytes()));
        let (reason, message, blocks) = match reply.answer {
            Ok(answer) => match input.patched(&answer.patch) {
                Ok(after) => {
                    for finding in answer.findings {
                        if !decided.findings.contains(&finding) {
                            decided.findings.push(finding);
                        }
                    }
                    chain.keep(hook, reply.by.clone(), asked.part, answer.patch);
                    return Some(after);
                }
                Err(refused) => {
                    decided.unanswered.push((SlotName::ObjectHook, "BadOutput"));
                    ("BadOutput", refused.to_string(), false)
                }
            },
            Err(unanswered) => (unanswered.reason(), unanswered.message.clone(), unanswered.blocks),
        };
        let message = limits::cut_at(&format!("hook {}: {} {name}: {message}", hook.name, input.kind), MAX_MESSAGE);
        if blocks {
            decided.hold(asked.part, reason, format!("{message}; it stays as it is in the cluster, since onFailure is Block"));
            return None;
        }
        let last = self.last_patches(decided).remove(&hook.name);
        let kept = last.and_then(|last| Some((last.parts.get(&asked.part)?.clone(), last.policy)));
        let Some((after, patch, by)) = kept.and_then(|(patch, by)| Some((input.patched(&patch).ok()?, patch, by))) else {
            decided.hold(asked.part, reason, format!("{message}; there is no former patch that fits, so the object is held"));
            return None;
        };
        decided.hold(HeldPart::Answer, reason, format!("{message}; its last accepted patch stays in force"));
        chain.keep(hook, by, asked.part, patch);
        Some(after)
    }

    /// The patches on record. That they cannot be believed is said once.
    fn last_patches(&self, decided: &mut Decided) -> Patches {
        let said = decided.findings.len();
        let last = self.stored::<Patches>(SlotName::ObjectHook, decided).map(|record| record.answer).unwrap_or_default();
        if let Some(new) = decided.findings.get(said).cloned()
            && decided.findings.iter().take(said).any(|finding| *finding == new)
        {
            decided.findings.truncate(said);
        }
        last
    }

    /// Puts the patches of this pass on record, with those of objects that it did not render.
    fn keep_patches(&mut self, chain: Chain, decided: &mut Decided) {
        let Chain { mut patches, questions } = chain;
        for (name, last) in self.last_patches(decided) {
            let Some(now) = patches.get_mut(&name) else { continue };
            for (part, patch) in last.parts {
                now.parts.entry(part).or_insert(patch);
            }
        }
        let Some(policy) = patches.values().next().map(|patch| patch.policy.clone()) else { return };
        let size = serde_json::to_string(&patches).map_or(0, |text| text.len());
        if size > MAX_RECORD {
            let message = format!(
                "the patches of hooks have {size} bytes, of which at most {MAX_RECORD} are kept: a hook that fails will hold what it changes"
            );
            decided.note("PatchesTooLarge", &message);
            return;
        }
        let record = Record { policy, input: asked(&questions), answer: patches, fallback_for: None, mac: String::new() };
        self.writer.put(SlotName::ObjectHook, &self.dp.uid, record, self.sealing);
    }
}

/// What a hook is asked about.
#[derive(Debug, Clone, Copy)]
struct Asked {
    part: HeldPart,
    operation: Operation,
}

impl Chain {
    /// Of a hook without a name, which is there to be compared with, nothing is kept.
    fn keep(&mut self, hook: &Hook, policy: Identity, part: HeldPart, patch: String) {
        if hook.name.is_empty() {
            return;
        }
        let entry = self.patches.entry(hook.name.clone()).or_insert_with(|| Patch { policy, parts: BTreeMap::new() });
        entry.parts.insert(part, patch);
    }
}
