//! Asks the policies: the only place in the core that awaits, and it awaits nothing else.
//!
//! A failure keeps the last accepted answer in force (`weir.dev/decisions`); without one, what the slot shapes is held. A DataPlane is never
//! rendered without its Konnect environment (design section 8).

use weir_api::{condition::reasons, keys};

use super::{
    conflicts::{self, Settled, Settlements},
    objects::{
        certificate::{self, Certificate},
        proxy::Layers,
    },
    plan::lookup,
    validate::{Konnect, Validated},
};
use crate::{
    decisions::{Found, Record, Sealing, Stored, Writer},
    hash,
    konnect::CERTIFICATE_MOUNT,
    plan::{HeldPart, Hold, Outcome, PolicyUse},
    policy::{
        Finding, Identity, Policies, Policy, PolicyError, Severity, Slot, SlotName,
        conflict_resolution::{self, ConflictResolution, Verdict},
        konnect_env::{self, KonnectEnv},
    },
};

/// What the policies say, and what is held because they do not.
#[derive(Debug)]
pub struct Decided {
    /// The admin certificate in force.
    pub certificate: Certificate,
    /// Name of the admin Service.
    pub admin_service: lookup::Name,
    /// The pod's settled parts; none when the pod template is held.
    pub settled: Option<Settled>,
    /// konnect-env's answer in force.
    pub konnect: Option<konnect_env::Answer>,
    /// The answer is not of this pass: the certificate digest in force stays.
    pub konnect_kept: bool,
    /// New text of `weir.dev/decisions`.
    pub decisions: Option<String>,
    /// What is held.
    pub holds: Vec<Hold>,
    /// Of policies and of this step.
    pub findings: Vec<Finding>,
    /// Policies asked.
    pub policies: Vec<PolicyUse>,
}

impl Decided {
    fn hold(&mut self, what: HeldPart, reason: &str, message: impl Into<String>) {
        self.holds.push(Hold { what, reason: reason.into(), message: message.into() });
    }

    fn asked(&mut self, dp: &Validated<'_>, slot: SlotName, who: &Identity, outcome: Outcome) {
        let object = format!("DataPlane {}/{}", dp.namespace, dp.name);
        self.policies.push(PolicyUse { slot, object, source: who.source.clone(), digest: who.digest.clone(), outcome });
    }
}

/// Asks every policy that this DataPlane needs.
pub async fn decide(dp: &Validated<'_>, policies: &Policies, sealing: &Sealing) -> Decided {
    let admin_service = lookup::admin_service(dp);
    let certificate = certificate::choose(dp, admin_service.text());
    let mut decided = Decided {
        certificate,
        admin_service,
        settled: None,
        konnect: None,
        konnect_kept: false,
        decisions: None,
        holds: Vec::new(),
        findings: dp.findings.clone(),
        policies: Vec::new(),
    };
    let stored = lookup::live_deployment(dp).and_then(|d| d.object.metadata.annotations.as_ref()).and_then(|a| a.get(keys::DECISIONS));
    let mut pass = Pass { dp, sealing, stored: Stored::parse(stored.map(String::as_str)), writer: Writer::default() };

    if pass.konnect(policies, &mut decided).await {
        let layers = Layers::collect(dp, decided.konnect.as_ref(), &decided.certificate.secret);
        let settlements = pass.conflicts(policies, &layers, &mut decided).await;
        decided.settled = settlements.map(|settlements| conflicts::settle(&layers, &settlements));
    }
    let dropped = decided.settled.iter().flat_map(|s| s.dropped.iter());
    decided.findings.extend(
        dropped
            .map(|mount| Finding {
                severity: Severity::Warning,
                code: "MountWithoutVolume".into(),
                path: format!("volumeMounts[{}]", mount.mount_path),
                message: format!("volume {:?} is not in the pod: the mount is left out", mount.name),
            })
            .collect::<Vec<_>>(),
    );
    match pass.writer.text() {
        Ok(text) => decided.decisions = text,
        Err(bytes) => decided.findings.push(Finding {
            severity: Severity::Warning,
            code: "DecisionsTooLarge".into(),
            path: format!("metadata.annotations[{}]", keys::DECISIONS),
            message: format!("the answers in force have {bytes} bytes and are not kept; a failing policy will hold the pod template"),
        }),
    }
    decided
}

struct Pass<'a> {
    dp: &'a Validated<'a>,
    sealing: &'a Sealing,
    stored: Stored,
    writer: Writer,
}

impl Pass<'_> {
    /// Fills `decided.konnect`. False when the pod template cannot be rendered for want of an answer.
    async fn konnect(&mut self, policies: &Policies, decided: &mut Decided) -> bool {
        let (facts, policy) = match &self.dp.konnect {
            Konnect::None => return true,
            Konnect::NotAccepted { message } => return self.keep_konnect(decided, reasons::NOT_SUPPORTED_EXTENSIONS, message),
            Konnect::Blocked { reason, message } => return self.keep_konnect(decided, reason, message),
            Konnect::Ready { facts, .. } => (facts, &policies.konnect_env),
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
        match ask::<KonnectEnv>(self.dp, policy.as_ref(), &input, decided, has_environment).await {
            Ok(answer) => {
                decided.findings.extend(answer.findings.iter().cloned());
                let record = Record {
                    policy: policy.identity().clone(),
                    input: hash::digest_json(&input),
                    answer: answer.clone(),
                    mac: String::new(),
                };
                self.writer.put(SlotName::KonnectEnv, &self.dp.uid, record, self.sealing);
                decided.konnect = Some(answer);
                true
            }
            Err(error) => self.keep_konnect(decided, error.reason(), &error.to_string()),
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

    /// Settlements of all conflicts; none when one of them has no accepted verdict and never had.
    async fn conflicts(&mut self, policies: &Policies, layers: &Layers, decided: &mut Decided) -> Option<Settlements> {
        let found = conflicts::find(layers);
        if found.is_empty() {
            return Some(Settlements::new());
        }
        let policy = &policies.conflict_resolution;
        let input = conflict_resolution::Input { context: self.dp.context(), conflicts: found };
        let answer = ask::<ConflictResolution>(self.dp, policy.as_ref(), &input, decided, |_| Ok(())).await;
        let last = self.stored::<Settlements>(SlotName::ConflictResolution, decided);
        let kept = last.as_ref().map(|last| kept(last, answer.is_ok().then_some(policy.identity()))).unwrap_or_default();
        let mut settlements = Settlements::new();
        let mut complete = true;
        for (index, conflict) in input.conflicts.iter().enumerate() {
            let key = conflicts::key(conflict.kind, &conflict.subject);
            let verdict = answer.as_ref().map(|answer| answer.resolutions.get(index));
            let settled = match verdict {
                Ok(Some(resolution)) => {
                    decided.findings.extend(resolution.findings.iter().cloned());
                    let settled = conflicts::settlement(conflict, &resolution.verdict);
                    if let (None, Some((reason, message))) = (&settled, waiting(&resolution.verdict)) {
                        decided.hold(held(kept.contains_key(&key)), reason, format!("{}: {message}", conflict.subject));
                    }
                    settled
                }
                // An answer has one resolution per conflict: its slot's check saw to that.
                Ok(None) => None,
                Err(error) => {
                    decided.hold(held(kept.contains_key(&key)), error.reason(), format!("{}: {error}", conflict.subject));
                    None
                }
            };
            match settled.or_else(|| kept.get(&key).cloned()) {
                Some(settlement) => {
                    settlements.insert(key, settlement);
                }
                None => complete = false,
            }
        }
        if !complete {
            return None;
        }
        let record = match (&answer, last) {
            (Err(_), Some(last)) => Record { answer: settlements.clone(), ..last },
            (Ok(_) | Err(_), _) => Record {
                policy: policy.identity().clone(),
                input: hash::digest_json(&input),
                answer: settlements.clone(),
                mac: String::new(),
            },
        };
        self.writer.put(SlotName::ConflictResolution, &self.dp.uid, record, self.sealing);
        Some(settlements)
    }

    /// The verified record of a slot; one that cannot be believed is said once and counts as none.
    fn stored<A: serde::Serialize + serde::de::DeserializeOwned>(&self, slot: SlotName, decided: &mut Decided) -> Option<Record<A>> {
        match self.stored.get(slot, &self.dp.uid, self.sealing) {
            Found::Record(record) => Some(record),
            Found::None => None,
            Found::Unverified => {
                decided.findings.push(Finding {
                    severity: Severity::Warning,
                    code: "DecisionsUnverified".into(),
                    path: format!("metadata.annotations[{}]", keys::DECISIONS),
                    message: format!("the record of slot {slot} is not what the operator wrote and counts as none"),
                });
                None
            }
        }
    }
}

/// The last settlements, to stand in for what the policy does not settle. Where the record will be in the name of `present`, they say whose
/// they are.
fn kept(last: &Record<Settlements>, present: Option<&Identity>) -> Settlements {
    let mut kept = last.answer.clone();
    if let Some(present) = present {
        for settlement in kept.values_mut() {
            let former = settlement.kept_from.take().unwrap_or_else(|| last.policy.clone());
            settlement.kept_from = (former != *present).then_some(former);
        }
    }
    kept
}

/// A kept settlement holds back one answer, a missing one the pod template.
fn held(kept: bool) -> HeldPart {
    if kept { HeldPart::Answer } else { HeldPart::PodTemplate }
}

/// Reason and message of a verdict that settles nothing.
fn waiting(verdict: &Verdict) -> Option<(&'static str, &str)> {
    match verdict {
        Verdict::Reject(message) => Some((reasons::REJECTED, message)),
        Verdict::Hold(message) => Some((reasons::HELD, message)),
        Verdict::Keep(_) | Verdict::Merge(_) => None,
    }
}

/// A hybrid data plane is never rendered without its Konnect environment: not even when a policy says so.
fn has_environment(answer: &konnect_env::Answer) -> Result<(), &'static str> {
    if answer.env.is_empty() { Err("no environment at all; a policy that has none to give has to refuse") } else { Ok(()) }
}

async fn ask<S: Slot>(
    dp: &Validated<'_>,
    policy: &dyn Policy<S>,
    input: &S::Input,
    decided: &mut Decided,
    usable: impl FnOnce(&S::Answer) -> Result<(), &'static str>,
) -> Result<S::Answer, PolicyError> {
    let answer = policy.evaluate(input).await;
    let answer = answer.and_then(|answer| match usable(&answer) {
        Ok(()) => Ok(answer),
        Err(why) => Err(PolicyError::BadOutput(why.into())),
    });
    decided.asked(dp, S::NAME, policy.identity(), Outcome::of(&answer));
    answer
}
