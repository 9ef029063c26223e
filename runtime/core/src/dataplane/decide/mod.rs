//! Asks the policies: the only place in the core that awaits, and it awaits nothing else.
//!
//! A failure keeps the last accepted answer in force (`weir.dev/decisions`); without one, what the slot shapes is held. `onFailure` may say
//! otherwise. A DataPlane is never rendered without its Konnect environment (design section 8).

mod conflicts;
mod decided;
mod farewell;
mod hooks;
mod konnect;
mod own;
mod placing;
mod plugins;

use k8s_openapi::api::apps::v1::Deployment;
use weir_api::{condition::reasons, keys};

pub use self::{decided::Decided, own::Own};

use self::placing::Inputs;
use super::{
    conflicts::{Settled, Settlements},
    objects::certificate,
    plan::lookup,
    plugins::{Mounted, mounted},
    snapshot::Child,
    validate::Validated,
};
use crate::{
    decisions::{Found, Record, Sealing, Stored, Writer},
    plan::HeldPart,
    policy::{Chosen, Finding, Identity, Policies, Reply, Severity, Slot, SlotName, konnect_env},
};

/// Asks every policy that this DataPlane needs.
pub async fn decide(dp: &Validated<'_>, policies: &Policies, sealing: &Sealing) -> Decided {
    let admin_service = lookup::admin_service(dp);
    let certificate = certificate::choose(dp, admin_service.text());
    let mut decided = Decided::new(certificate, admin_service);
    decided.findings.clone_from(&dp.findings);
    let mut pass = Pass::new(dp, lookup::live_deployment(dp), policies, sealing);
    pass.plugins(&mut decided);
    let renders = pass.konnect(&mut decided).await;
    pass.names(&mut decided).await;
    if renders && !pass.blocked {
        pass.pod(&mut decided).await;
    }
    pass.keep_settlements();
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
    pass.hooks(&mut decided).await;
    decided.decisions = pass.text(&mut decided);
    decided.own = pass.own(&mut decided).await;
    decided.restored = pass.restored(&decided);
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
    /// Who answered the first of them, and for whom where that was a stand-in.
    judge: Option<(Identity, Option<Identity>)>,
    /// One of them was not answered.
    unanswered: bool,
    /// Nor is any template rendered for that: its policy says so.
    blocked: bool,
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
            judge: None,
            unanswered: false,
            blocked: false,
            writer: Writer::default(),
        }
    }

    /// Which plugin is whose. One that nobody gets is left out; it holds nothing else.
    async fn names(&mut self, decided: &mut Decided) {
        let used = decided.plugins.clone();
        self.settle(super::plugins::conflicts(&used), HeldPart::Plugin, decided).await;
        decided.mounted = named(&mounted(&used, &self.settlements));
    }

    /// What all parties want in the pod, and who gets it.
    async fn pod(&mut self, decided: &mut Decided) {
        let (used, konnect, certificate) = (decided.plugins.clone(), decided.konnect.clone(), decided.certificate.secret.clone());
        let inputs = Inputs { used: &used, konnect: konnect.as_ref(), certificate: &certificate };
        let (settled, mut mounted) = self.placed(inputs, decided).await;
        if let Some(settled) = &settled {
            self.unnamed(settled, &mut mounted, decided);
        }
        decided.settled = settled;
        decided.mounted = named(&mounted);
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

fn blocked(message: &str) -> String {
    format!("{message}; the pod template stays as it is in the cluster, since onFailure is Block")
}

/// Names of plugins with the installation of each.
fn named(mounted: &[Mounted<'_>]) -> Vec<(String, String)> {
    mounted.iter().map(|m| (m.plugin.name.clone(), m.used.reference.clone())).collect()
}

async fn ask<'a, S: Slot>(
    dp: &Validated<'_>,
    chosen: &'a Chosen<S>,
    input: &S::Input,
    decided: &mut Decided,
    usable: fn(&S::Answer) -> Result<(), &'static str>,
) -> Reply<'a, S::Answer> {
    ask_about(&format!("DataPlane {}/{}", dp.namespace, dp.name), chosen, input, decided, usable).await
}

/// Asks about an object, `Kind namespace/name`.
async fn ask_about<'a, S: Slot>(
    about: &str,
    chosen: &'a Chosen<S>,
    input: &S::Input,
    decided: &mut Decided,
    usable: fn(&S::Answer) -> Result<(), &'static str>,
) -> Reply<'a, S::Answer> {
    let reply = chosen.ask(input, usable).await;
    decided.policies.extend(reply.uses(S::NAME, about));
    if let Err(unanswered) = &reply.answer {
        decided.unanswered.push((S::NAME, unanswered.reason()));
    }
    // Several questions of one pass may end so; it is said once.
    if let Some(finding) = reply.fell_back.as_ref().filter(|finding| !decided.findings.contains(finding)) {
        decided.fell_back.push(finding.message.clone());
        decided.findings.push(finding.clone());
    }
    reply
}
