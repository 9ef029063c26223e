//! While a change that comes from elsewhere waits for the owner's word, an own change of the owner is rendered with the answers, plugins and
//! certificate in force (semantics "Owner-held rollouts").

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::keys;

use super::{
    super::{
        conflicts::Settled,
        objects::{certificate, client_certificate, deployment, proxy::CLUSTER_CERTIFICATE_VOLUME},
        plan::{marks, rollback},
        plugins::{self, Contents, Used},
        validate::Konnect,
    },
    Decided, Pass,
    conflicts::asked,
    placing::Inputs,
};
use crate::{
    decisions::{Found, Record},
    hash,
    plan::HeldPart,
    plugin_installation::content::Content,
    policy::{
        SlotName,
        conflict_resolution::{self, Conflict},
        konnect_env,
    },
};

/// The inputs in force, settled for the spec as it is now.
#[derive(Debug)]
pub struct Own {
    /// The pod template that comes of them.
    pub template: PodTemplateSpec,
    /// Secret of the admin certificate: the one in force, unless it nears its end.
    pub certificate: String,
    /// konnect-env's answer in force.
    pub konnect: Option<konnect_env::Answer>,
    /// The extension that this answer is of.
    pub extension: Option<String>,
    /// Digest of the Konnect certificate in force, unless that nears its end.
    pub konnect_certificate: Option<String>,
    /// Installations whose content stays.
    pub plugins: Vec<Used>,
    /// Text of `weir.dev/decisions` with these answers.
    pub decisions: Option<String>,
    /// What could not be separated from an own change and is new with it.
    pub rides: Vec<String>,
    /// It rolls though the owner changes nothing now: something that they named before is there at last, or a certificate nears its end.
    pub due: bool,
}

/// The Konnect environment of an own change.
struct Environment {
    record: Option<Record<konnect_env::Answer>>,
    /// It is this pass's answer and not the one in force.
    fresh: bool,
    /// The owner names another extension than the one in force.
    renamed: bool,
    /// The certificate that takes the place of one that nears its end is in another Secret: it comes with the environment only.
    moved: bool,
}

impl Pass<'_> {
    /// The inputs in force; none where the owner holds nothing, or nothing is in force yet.
    pub(super) async fn own(&self, decided: &mut Decided) -> Option<Own> {
        let live = self.live.filter(|_| self.dp.manual())?;
        decided.settled.as_ref()?;
        let template = live.object.spec.as_ref().map(|s| &s.template)?;
        let mut pass = Pass::new(self.dp, self.live, self.policies, self.sealing);
        // What this pass says of policies and conflicts has been said for the new inputs.
        let mut quiet = decided.quiet();
        let environment = self.environment(&live.object, decided, &mut quiet);
        let konnect = environment.record.as_ref().map(|record| record.answer.clone());
        if let Some(record) = environment.record.clone() {
            pass.writer.put(SlotName::KonnectEnv, &self.dp.uid, record, self.sealing);
        }
        let before = pass.stored::<Contents>(SlotName::PluginPackaging, &mut quiet).map(|r| r.answer).unwrap_or_default();
        let used: Vec<Used> = decided.plugins.iter().map(|used| in_force(used, &before)).collect();
        pass.put_plugins(&used);
        let secret = self.admin_certificate(template, decided);
        let inputs = Inputs { used: &used, konnect: konnect.as_ref(), certificate: &secret };
        let mut rides: Vec<String> = Vec::new();
        let settled = pass.settled_again(inputs, &mut quiet, &mut rides).await?;
        if environment.moved && environment.fresh {
            rides.extend(marks::extension(self.dp));
        }
        let named = |u: &Used| !before.contains_key(&u.reference);
        // Where nobody knows what the pods have, nothing is taken for new.
        let arrived = used.iter().any(named) && !(before.is_empty() && self.mounts_plugins());
        let due = arrived || (environment.fresh && (environment.renamed || environment.moved));
        let extension = konnect.as_ref().and_then(|_| self.extension(&live.object, environment.fresh));
        let konnect_certificate = konnect.as_ref().and_then(|_| self.client_certificate(&live.object, environment.fresh));
        let path = konnect.as_ref().and_then(|k| k.readiness_path.as_deref());
        let rendered = deployment::template(self.dp, &settled, path, konnect_certificate.as_deref());
        let template = pass.hooked_again(rendered, &mut quiet, &mut rides).await?;
        let decisions = pass.text(&mut quiet);
        Some(Own { template, certificate: secret, konnect, extension, konnect_certificate, plugins: used, decisions, rides, due })
    }

    /// Whose Konnect environment it is: the one in force, unless the owner names another extension, or needs the new one for its certificate.
    fn environment(&self, live: &Deployment, decided: &Decided, quiet: &mut Decided) -> Environment {
        let stored = self.stored::<konnect_env::Answer>(SlotName::KonnectEnv, quiet).filter(|_| decided.konnect.is_some());
        let in_force = annotation(live, keys::KONNECT_EXTENSION);
        let renamed = in_force.is_some() && in_force.cloned() != marks::extension(self.dp);
        let moved = client_certificate::due(self.dp, live).is_some_and(|due| !due.mounted);
        // Without a record the owner has just named the extension: its environment is part of the own change.
        let fresh = self.konnect.clone().filter(|_| stored.is_none() || renamed || moved);
        Environment { fresh: fresh.is_some(), record: fresh.or(stored), renamed, moved }
    }

    /// The admin certificate that the pods mount, unless it nears its end.
    fn admin_certificate(&self, template: &PodTemplateSpec, decided: &Decided) -> String {
        let volume = template.spec.iter().flat_map(|s| s.volumes.iter().flatten()).find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME);
        let mounted = volume.and_then(|v| v.secret.as_ref()?.secret_name.clone());
        mounted.filter(|name| !certificate::ends(self.dp, name)).unwrap_or_else(|| decided.certificate.secret.clone())
    }

    fn extension(&self, live: &Deployment, fresh: bool) -> Option<String> {
        let in_force = annotation(live, keys::KONNECT_EXTENSION).filter(|_| !fresh);
        in_force.cloned().or_else(|| marks::extension(self.dp))
    }

    /// Digest of the client certificate: of this pass with its environment, else the one in force, unless that nears its end.
    fn client_certificate(&self, live: &Deployment, fresh: bool) -> Option<String> {
        if let (Konnect::Ready { certificate_digest, .. }, true) = (&self.dp.konnect, fresh) {
            return certificate_digest.clone();
        }
        let due = client_certificate::due(self.dp, live).filter(|due| due.mounted);
        due.map(|due| due.digest.to_owned()).or_else(|| client_certificate::in_force(&live.spec.as_ref()?.template).cloned())
    }

    /// Settles what an own change makes of the inputs in force. The very conflicts that were settled keep their verdicts. None when one of
    /// others has no verdict.
    async fn settled_again(&mut self, inputs: Inputs<'_>, quiet: &mut Decided, rides: &mut Vec<String>) -> Option<Settled> {
        let last = self.last(quiet);
        if let Some(last) = &last {
            let (settled, questions) = inputs.settled(self.dp, &last.answer);
            if last.input == self.question(questions) {
                self.writer.put(SlotName::ConflictResolution, &self.dp.uid, last.clone(), self.sealing);
                return Some(settled);
            }
        }
        // A verdict depends on what the owner writes now: these are asked again, and a new policy's verdicts ride along.
        self.settle(plugins::conflicts(inputs.used), HeldPart::Plugin, quiet).await;
        let settled = self.placed(inputs, quiet).await.0?;
        self.keep_settlements();
        let present = self.judge.as_ref().map_or_else(|| self.policies.conflict_resolution.identity(), |(judge, _)| judge);
        let another = last.is_some_and(|last| last.policy != *present && last.answer != self.settlements);
        rides.extend(another.then(|| format!("policy {} {}", SlotName::ConflictResolution, present.digest)));
        Some(settled)
    }

    /// Digest of the questions that settling these would ask.
    fn question(&self, found: [Vec<Conflict>; 3]) -> String {
        let input = |conflicts| hash::digest_json(&conflict_resolution::Input { context: self.dp.context(), conflicts });
        asked(&found.into_iter().filter(|found| !found.is_empty()).map(input).collect::<Vec<_>>())
    }

    /// What an undone rollout has brought back, by the record that came with it.
    pub(super) fn restored(&self, decided: &Decided) -> Vec<Used> {
        if rollback::standing(self.dp).is_none() {
            return Vec::new();
        }
        // One that cannot be believed has been said.
        let Found::Record(record) = self.stored.get::<Contents>(SlotName::PluginPackaging, &self.dp.uid, self.sealing) else {
            return Vec::new();
        };
        let fresh = |reference: &str, content: &Content| decided.plugins.iter().any(|u| u.reference == reference && *u.content == *content);
        let used =
            |(reference, content): (String, Content)| Used { fresh: fresh(&reference, &content), reference, content: Arc::new(content) };
        record.answer.into_iter().map(used).collect()
    }
}

fn annotation<'a>(live: &'a Deployment, key: &str) -> Option<&'a String> {
    live.metadata.annotations.as_ref()?.get(key)
}

/// What the pods have of an installation; what they get of it now where they have nothing of it, because its owner has just named it.
fn in_force(used: &Used, before: &Contents) -> Used {
    match before.get(&used.reference) {
        Some(content) => Used { reference: used.reference.clone(), content: Arc::new(content.clone()), fresh: *content == *used.content },
        None => used.clone(),
    }
}
