//! Slot konnect-env: the Konnect environment, or the last one that was accepted.

use weir_api::condition::reasons;

use super::{super::validate::Konnect, Decided, Pass, ask, blocked};
use crate::{
    decisions::Record,
    hash,
    konnect::CERTIFICATE_MOUNT,
    plan::HeldPart,
    policy::{
        SlotName,
        konnect_env::{self, KonnectEnv},
    },
};

impl Pass<'_> {
    /// Fills `decided.konnect`. False when the pod template cannot be rendered for want of an answer.
    pub(super) async fn konnect(&mut self, decided: &mut Decided) -> bool {
        let (facts, chosen) = match &self.dp.konnect {
            Konnect::None => return true,
            Konnect::NotAccepted { message } => return self.keep_konnect(decided, reasons::NOT_SUPPORTED_EXTENSIONS, message),
            Konnect::Blocked { reason, message } => return self.keep_konnect(decided, reason, message),
            Konnect::Ready { facts, .. } => (facts, &self.policies.konnect_env),
        };
        let input = konnect_env::Input {
            context: self.dp.context(),
            control_plane_id: facts.control_plane_id.clone(),
            cluster_type: facts.cluster_type,
            endpoints: facts.endpoints.clone(),
            region: facts.region.clone(),
            certificate: konnect_env::Certificate { secret_name: facts.certificate_secret.clone(), mount_path: CERTIFICATE_MOUNT.into() },
            data_plane_labels: facts.labels.clone(),
            image: self.dp.image().to_owned(),
        };
        let reply = ask::<KonnectEnv>(self.dp, chosen, &input, decided, has_environment).await;
        match reply.answer {
            Ok(answer) => {
                decided.findings.extend(answer.findings.iter().cloned());
                let record = Record {
                    policy: reply.by.clone(),
                    input: hash::digest_json(&input),
                    answer: answer.clone(),
                    fallback_for: reply.fallback_for.cloned(),
                    mac: String::new(),
                };
                self.writer.put(SlotName::KonnectEnv, &self.dp.uid, record.clone(), self.sealing);
                self.konnect = Some(record);
                decided.konnect = Some(answer);
                true
            }
            Err(unanswered) if unanswered.blocks => {
                decided.hold(HeldPart::PodTemplate, unanswered.reason(), blocked(&unanswered.message));
                false
            }
            Err(unanswered) => self.keep_konnect(decided, unanswered.reason(), &unanswered.message),
        }
    }

    fn keep_konnect(&mut self, decided: &mut Decided, reason: &str, message: &str) -> bool {
        match self.stored::<konnect_env::Answer>(SlotName::KonnectEnv, decided) {
            Some(record) => {
                decided.hold(HeldPart::Answer, reason, format!("{message}; the last accepted Konnect environment stays in force"));
                decided.konnect = Some(record.answer.clone());
                decided.konnect_kept = true;
                self.writer.put(SlotName::KonnectEnv, &self.dp.uid, record, self.sealing);
                true
            }
            None => {
                decided.hold(
                    HeldPart::PodTemplate,
                    reason,
                    format!("{message}; the pod template is held, because it would be without its Konnect environment"),
                );
                false
            }
        }
    }
}

/// A hybrid data plane is never rendered without its Konnect environment: not even when a policy says so.
fn has_environment(answer: &konnect_env::Answer) -> Result<(), &'static str> {
    if answer.env.is_empty() { Err("no environment at all; a policy that has none to give has to refuse") } else { Ok(()) }
}
