//! While a change that comes from elsewhere waits for the owner's word, an own change of the owner is rendered with the answers, plugins and
//! certificate in force (semantics "Owner-held rollouts").

use std::sync::Arc;

use weir_api::keys;

use super::{
    super::{
        conflicts::{self, Settled, Settlements, settle},
        objects::{
            certificate,
            proxy::{CLUSTER_CERTIFICATE_VOLUME, Layers},
        },
        plugins::{self, Contents, Used, bringing, mounted},
        validate::Konnect,
    },
    Decided, Pass,
    conflicts::asked,
};
use crate::{
    hash,
    plan::HeldPart,
    policy::{SlotName, conflict_resolution, konnect_env},
};

/// The inputs in force, settled for the spec as it is now.
#[derive(Debug)]
pub struct Own {
    /// The pod's parts.
    pub settled: Settled,
    /// Secret of the admin certificate: the one in force, unless it nears its end.
    pub certificate: String,
    /// konnect-env's answer in force.
    pub konnect: Option<konnect_env::Answer>,
    /// Digest of the Konnect certificate in force.
    pub konnect_certificate: Option<String>,
    /// Installations whose content stays.
    pub plugins: Vec<Used>,
    /// Text of `weir.dev/decisions` with these answers.
    pub decisions: Option<String>,
    /// What could not be separated from an own change and is new with it.
    pub rides: Option<String>,
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
        let stored = pass.stored::<konnect_env::Answer>(SlotName::KonnectEnv, &mut quiet).filter(|_| decided.konnect.is_some());
        // Without a record the owner has just named the extension: its environment is part of the own change.
        let named = stored.is_none();
        let record = stored.or_else(|| self.konnect.clone());
        let konnect = record.as_ref().map(|record| record.answer.clone());
        if let Some(record) = record {
            pass.writer.put(SlotName::KonnectEnv, &self.dp.uid, record, self.sealing);
        }
        let before = pass.stored::<Contents>(SlotName::PluginPackaging, &mut quiet).map(|r| r.answer).unwrap_or_default();
        let used: Vec<Used> = decided.plugins.iter().map(|used| in_force(used, &before)).collect();
        pass.put_plugins(&used);
        let secret = template.spec.iter().flat_map(|s| s.volumes.iter().flatten()).find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME);
        let secret = secret.and_then(|v| v.secret.as_ref()?.secret_name.clone()).filter(|name| !certificate::ends(self.dp, name));
        let secret = secret.unwrap_or_else(|| decided.certificate.secret.clone());
        let layers = |settlements: &Settlements| {
            let mounted = mounted(&used, settlements);
            Layers::collect(self.dp, konnect.as_ref(), &secret, &bringing(&used, &mounted), &mounted)
        };
        let mut rides = None;
        let last = pass.last(&mut quiet);
        let same = last.as_ref().filter(|last| last.input == pass.question(&used, &layers(&last.answer)));
        let layers = if let Some(record) = same {
            // The very conflicts that were settled: the verdicts in force are theirs.
            pass.settlements.clone_from(&record.answer);
            pass.writer.put(SlotName::ConflictResolution, &self.dp.uid, record.clone(), self.sealing);
            layers(&pass.settlements)
        } else {
            // A verdict depends on what the owner writes now: these are asked again, and a new policy's verdicts ride along.
            pass.settle(plugins::conflicts(&used), HeldPart::Plugin, &mut quiet).await;
            let layers = layers(&pass.settlements);
            if !pass.settle(conflicts::find(&layers), HeldPart::PodTemplate, &mut quiet).await {
                return None;
            }
            pass.keep_settlements();
            let present = pass.judge.as_ref().unwrap_or_else(|| self.policies.conflict_resolution.identity());
            let another = last.is_some_and(|last| last.policy != *present && last.answer != pass.settlements);
            rides = another.then(|| format!("policy {} {}", SlotName::ConflictResolution, present.digest));
            layers
        };
        let settled = settle(&layers, &pass.settlements);
        let annotations = template.metadata.as_ref().and_then(|m| m.annotations.as_ref());
        let in_force = annotations.and_then(|a| a.get(keys::KONNECT_CERTIFICATE_DIGEST)).cloned();
        let konnect_certificate = match &self.dp.konnect {
            Konnect::Ready { certificate_digest, .. } if named => certificate_digest.clone(),
            Konnect::Ready { .. } | Konnect::None | Konnect::NotAccepted { .. } | Konnect::Blocked { .. } => {
                in_force.filter(|_| konnect.is_some())
            }
        };
        Some(Own { settled, certificate: secret, konnect, konnect_certificate, plugins: used, decisions: pass.text(&mut quiet), rides })
    }

    /// Digest of the questions that settling these would ask.
    fn question(&self, used: &[Used], layers: &Layers) -> String {
        let found = [plugins::conflicts(used), conflicts::find(layers)].into_iter().filter(|found| !found.is_empty());
        let input = |conflicts| hash::digest_json(&conflict_resolution::Input { context: self.dp.context(), conflicts });
        asked(&found.map(input).collect::<Vec<_>>())
    }
}

/// What the pods have of an installation; what they get of it now where they have nothing of it, because its owner has just named it.
fn in_force(used: &Used, before: &Contents) -> Used {
    match before.get(&used.reference) {
        Some(content) => Used { reference: used.reference.clone(), content: Arc::new(content.clone()), fresh: *content == *used.content },
        None => used.clone(),
    }
}
