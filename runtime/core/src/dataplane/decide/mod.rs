//! Asks the policies: the only place in the core that awaits, and it awaits nothing else.
//!
//! A failure keeps the last accepted answer in force (`weir.dev/decisions`); without one, what the slot shapes is held. A DataPlane is never
//! rendered without its Konnect environment (design section 8).

mod conflicts;
mod konnect;
mod own;
mod plugins;

use k8s_openapi::api::apps::v1::Deployment;
use weir_api::{condition::reasons, keys};

pub use self::own::Own;

use super::{
    conflicts::{Settled, Settlements, settle},
    objects::{
        certificate::{self, Certificate},
        proxy::Layers,
    },
    plan::lookup,
    plugins::{Mounted, Used, bringing, is_in_place, mounted},
    snapshot::Child,
    validate::Validated,
};
use crate::{
    decisions::{Found, Record, Sealing, Stored, Writer},
    plan::{HeldPart, Hold, Outcome, PolicyUse},
    policy::{Finding, Identity, Policies, Policy, PolicyError, Severity, Slot, SlotName, konnect_env},
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
    /// Installations whose content the pods get.
    pub plugins: Vec<Used>,
    /// Names of plugins in the pods, with the installation of each.
    pub mounted: Vec<(String, String)>,
    /// What an own change of the owner is rendered with while a change from elsewhere waits; none where nothing does.
    pub own: Option<Own>,
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

    /// A copy of what is the same for every rendering, to collect what is said again and dropped.
    fn quiet(&self) -> Self {
        Self {
            certificate: self.certificate.clone(),
            admin_service: self.admin_service.clone(),
            settled: None,
            konnect: None,
            konnect_kept: false,
            plugins: Vec::new(),
            mounted: Vec::new(),
            own: None,
            decisions: None,
            holds: Vec::new(),
            findings: Vec::new(),
            policies: Vec::new(),
        }
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
        plugins: Vec::new(),
        mounted: Vec::new(),
        own: None,
        decisions: None,
        holds: Vec::new(),
        findings: dp.findings.clone(),
        policies: Vec::new(),
    };
    let mut pass = Pass::new(dp, lookup::live_deployment(dp), policies, sealing);
    pass.plugins(&mut decided);
    if pass.konnect(&mut decided).await {
        pass.pod(&mut decided).await;
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
    decided.decisions = pass.text(&mut decided);
    decided.own = pass.own(&mut decided).await;
    decided
}

struct Pass<'a> {
    dp: &'a Validated<'a>,
    live: Option<&'a Child<Deployment>>,
    policies: &'a Policies,
    sealing: &'a Sealing,
    stored: Stored,
    /// The last settlements, once they were needed.
    last: Option<Found<Settlements>>,
    /// The answer of slot konnect-env, where this pass has one of its own.
    konnect: Option<Record<konnect_env::Answer>>,
    /// Settlements of this pass.
    settlements: Settlements,
    /// Digests of the questions about conflicts.
    questions: Vec<String>,
    /// One of them was not answered.
    unanswered: bool,
    writer: Writer,
}

impl<'a> Pass<'a> {
    fn new(dp: &'a Validated<'a>, live: Option<&'a Child<Deployment>>, policies: &'a Policies, sealing: &'a Sealing) -> Self {
        let stored = live.and_then(|d| d.object.metadata.annotations.as_ref()).and_then(|a| a.get(keys::DECISIONS));
        Self {
            dp,
            live,
            policies,
            sealing,
            stored: Stored::parse(stored.map(String::as_str)),
            last: None,
            konnect: None,
            settlements: Settlements::new(),
            questions: Vec::new(),
            unanswered: false,
            writer: Writer::default(),
        }
    }

    /// What all parties want in the pod, and who gets it.
    async fn pod(&mut self, decided: &mut Decided) {
        let used = decided.plugins.clone();
        // A plugin that nobody gets is left out; it holds nothing else.
        self.settle(super::plugins::conflicts(&used), HeldPart::Plugin, decided).await;
        let mut mounted = mounted(&used, &self.settlements);
        let first = self.layers(decided, &used, &mounted);
        let all = mounted.len();
        if self.settle(super::conflicts::find(&first), HeldPart::PodTemplate, decided).await {
            let mut settled = settle(&first, &self.settlements);
            mounted.retain(|m| is_in_place(*m, &settled));
            if mounted.len() < all {
                // Kong does not start with a plugin that is named and not there: without its place it is not named either.
                let rest = self.layers(decided, &used, &mounted);
                if !self.settle(super::conflicts::find(&rest), HeldPart::PodTemplate, decided).await {
                    return self.keep_settlements();
                }
                settled = settle(&rest, &self.settlements);
            }
            self.unnamed(&settled, &mut mounted, decided);
            decided.settled = Some(settled);
        }
        decided.mounted = mounted.iter().map(|m| (m.plugin.name.clone(), m.used.reference.clone())).collect();
        self.keep_settlements();
    }

    fn layers(&self, decided: &Decided, used: &[Used], mounted: &[Mounted<'_>]) -> Layers {
        let bringing = bringing(used, mounted);
        Layers::collect(self.dp, decided.konnect.as_ref(), &decided.certificate.secret, &bringing, mounted)
    }

    /// Plugins that are in place and that the owner's KONG_PLUGINS does not name: Kong will not load them.
    fn unnamed(&self, settled: &Settled, mounted: &mut Vec<Mounted<'_>>, decided: &mut Decided) {
        let Some(enabled) = settled.env.iter().find(|var| var.name == "KONG_PLUGINS") else { return };
        let Some(names) = &enabled.value else {
            if !mounted.is_empty() {
                decided.findings.push(Finding {
                    severity: Severity::Warning,
                    code: "PluginsUnknown".into(),
                    path: "env.KONG_PLUGINS".into(),
                    message: "comes from another object, so nobody can say whether it names the plugins of spec.pluginsToInstall".into(),
                });
            }
            return;
        };
        let is_named = |m: &Mounted<'_>| names.split(',').any(|name| name.trim() == m.plugin.name);
        for lost in mounted.iter().filter(|m| !is_named(m)) {
            let message = format!(
                "{}: KONG_PLUGINS of the pod template does not name it, so Kong does not load it: add it there, or remove the variable",
                lost.plugin.name
            );
            decided.hold(HeldPart::Plugin, reasons::REJECTED, message);
        }
        mounted.retain(is_named);
    }

    /// The new text of the record.
    fn text(&self, decided: &mut Decided) -> Option<String> {
        match self.writer.text() {
            Ok(text) => text,
            Err(bytes) => {
                decided.findings.push(Finding {
                    severity: Severity::Warning,
                    code: "DecisionsTooLarge".into(),
                    path: format!("metadata.annotations[{}]", keys::DECISIONS),
                    message: format!(
                        "the answers in force have {bytes} bytes and are not kept; a failing policy will hold the pod template"
                    ),
                });
                None
            }
        }
    }

    /// The verified record of a slot; one that cannot be believed is said once and counts as none.
    fn stored<A: serde::Serialize + serde::de::DeserializeOwned>(&self, slot: SlotName, decided: &mut Decided) -> Option<Record<A>> {
        match self.stored.get(slot, &self.dp.uid, self.sealing) {
            Found::Record(record) => Some(record),
            Found::None => None,
            Found::Unverified => {
                decided.findings.push(unverified(slot));
                None
            }
        }
    }
}

fn unverified(slot: SlotName) -> Finding {
    Finding {
        severity: Severity::Warning,
        code: "DecisionsUnverified".into(),
        path: format!("metadata.annotations[{}]", keys::DECISIONS),
        message: format!("the record of slot {slot} is not what the operator wrote and counts as none"),
    }
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
