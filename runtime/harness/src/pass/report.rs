//! What a plan prints: one document for machines, the same content as YAML documents for people.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_api::{condition::reasons, keys};
use weir_core::{
    dataplane::plugins,
    events::Event,
    plan::{Change, ContentRequest, Plan, PolicyUse, Target},
    plugin_installation::content,
    policy::Finding,
};

use super::installations::Planned;
use crate::exit::Exit;

/// What a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Something is made, or made otherwise.
    Makes,
    /// Something goes that nobody uses any more.
    Removes,
    /// What is so is said: a status, or its half for machines in an annotation.
    Says,
}

/// Something that would be written to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// What for.
    pub purpose: Purpose,
    /// What, for a line.
    pub what: String,
}

/// Everything a plan says.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Every object that would be written, in apply order. A certificate Secret has no data here: it is minted in the cluster.
    pub objects: Vec<Value>,
    /// Statuses of the objects of the pass.
    pub statuses: Vec<Value>,
    /// Events.
    pub events: Vec<Of<Event>>,
    /// Findings, refused manifests included.
    pub findings: Vec<Of<Finding>>,
    /// Which policy decided what.
    pub policies: Vec<PolicyUse>,
    /// Objects that would be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<Target>,
    /// Children of Kong's operator that would be taken over: they keep their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub takeovers: Vec<Target>,
    /// What is no part of a plan and may be a mistake, for the summary.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// What is held back, for the summary.
    #[serde(skip)]
    pub held: Vec<String>,
    /// What would be written to the cluster, events aside: empty once everything is as it should be.
    #[serde(skip)]
    pub writes: Vec<Write>,
    /// How the command ends.
    #[serde(skip)]
    pub exit: Option<Exit>,
}

/// Something said about an object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Of<T> {
    /// `Kind namespace/name`.
    pub object: String,
    /// What is said.
    #[serde(flatten)]
    pub what: T,
}

impl Report {
    /// The exit code so far.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::Done)
    }

    /// Raises the exit code.
    pub fn ends(&mut self, exit: Exit) {
        self.exit = Some(self.exit().max(exit));
    }

    /// Adds the plan of one object.
    pub(super) fn add<S: Serialize>(&mut self, of: &Of<ObjectMeta>, plan: Plan<S>, planned: &Planned) {
        let object = of.object.clone();
        self.writes.extend(plan.changes.iter().map(|change| written(&object, change)));
        if plan.status_changed {
            self.writes.push(Write { purpose: Purpose::Says, what: format!("the status of {object}") });
        }
        for change in plan.changes {
            match change {
                Change::Apply { object, first: _ } => self.objects.push(object.to_json()),
                Change::MintCertificate(request) => self.objects.push(json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": request.metadata,
                })),
                Change::ProvideContent(request) => self.objects.extend(provided(&request, planned)),
                Change::ReleaseContent { target, owner: _ } | Change::Delete(target) => self.deletions.push(target),
                Change::TakeOver(target) => self.takeovers.push(target),
                // Said by their events.
                Change::Reclaim(_)
                | Change::SetFinalizer { key: _, present: _ }
                | Change::SetAnnotation { key: _, value: _ }
                | Change::RemoveAnnotation { key: _ } => {}
            }
        }
        if let Some(status) = plan.status {
            let (kind, version) = of.object.split_once(' ').map_or(("", ""), |(kind, _)| (kind, version(kind)));
            self.statuses.push(json!({
                "apiVersion": format!("{}/{version}", keys::GATEWAY_OPERATOR_GROUP), "kind": kind,
                "metadata": {"namespace": of.what.namespace, "name": of.what.name}, "status": status,
            }));
        }
        if !plan.holds.is_empty() {
            self.ends(Exit::Held);
        }
        self.held.extend(plan.holds.iter().map(|h| format!("{object}: {}: {}", h.reason, h.message)));
        for used in &plan.policies {
            // Another policy answered in its place: that is a finding and a warning, and nothing waits.
            self.ends(if used.fell_back { Exit::Done } else { used.outcome.into() });
        }
        let fell_back = plan.findings.iter().filter(|finding| finding.code == reasons::FELL_BACK);
        self.warnings.extend(fell_back.map(|finding| format!("{object}: {}", finding.message)));
        self.events.extend(plan.events.into_iter().map(|what| Of { object: object.clone(), what }));
        self.findings.extend(plan.findings.into_iter().map(|what| Of { object: object.clone(), what }));
        self.policies.extend(plan.policies);
    }

    /// One JSON document.
    ///
    /// # Errors
    /// None in practice: everything in it serialises.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl Of<ObjectMeta> {
    /// A DataPlane.
    #[must_use]
    pub fn data_plane(meta: &ObjectMeta) -> Self {
        Self::named("DataPlane", meta)
    }

    /// An installation.
    #[must_use]
    pub fn installation(meta: &ObjectMeta) -> Self {
        Self::named("KongPluginInstallation", meta)
    }

    fn named(kind: &str, meta: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self { object: format!("{kind} {}/{}", text(&meta.namespace), text(&meta.name)), what: meta.clone() }
    }
}

/// One line for one effect.
fn written(of: &str, change: &Change) -> Write {
    use Purpose::{Makes, Removes, Says};
    let target = |verb: &str, target: &Target| format!("{verb} {} {}/{}", target.kind.api().1, target.namespace, target.name);
    let (purpose, what) = match change {
        Change::Apply { object, first: _ } => {
            let (meta, text) = (object.meta(), |text: &Option<String>| text.clone().unwrap_or_default());
            (Makes, format!("apply {} {}/{}", object.kind().api().1, text(&meta.namespace), text(&meta.name)))
        }
        Change::MintCertificate(request) => (Makes, format!("make the certificate {}", request.metadata.name.clone().unwrap_or_default())),
        Change::ProvideContent(request) => (Makes, format!("provide plugin content {} in {}", request.hash, request.namespace)),
        Change::ReleaseContent { target: of, owner: _ } => (Removes, target("release", of)),
        Change::Delete(of) => (Removes, target("delete", of)),
        Change::TakeOver(of) => (Makes, target("take over", of)),
        Change::Reclaim(of) => (Makes, target("reclaim", of)),
        Change::SetFinalizer { key, present: true } => (Makes, format!("add finalizer {key} to {of}")),
        Change::SetFinalizer { key, present: false } => (Removes, format!("remove finalizer {key} from {of}")),
        Change::SetAnnotation { key, value: _ } if key == keys::PLUGINS => (Says, format!("set annotation {key} of {of}")),
        Change::SetAnnotation { key, value: _ } => (Makes, format!("set annotation {key} of {of}")),
        Change::RemoveAnnotation { key } => (Removes, format!("remove annotation {key} of {of}")),
    };
    Write { purpose, what }
}

fn version(kind: &str) -> &'static str {
    if kind == "DataPlane" { "v1beta1" } else { "v1alpha1" }
}

/// The copies that DataPlanes mount. Without the original among what is planned they have no data here: they are copied in the cluster.
pub(super) fn provided(request: &ContentRequest, planned: &Planned) -> Vec<Value> {
    let (namespace, installation) = &request.installation;
    (0..request.maps)
        .map(|index| {
            let source = planned.config_map(namespace, &content::own_name(installation, &request.hash, index));
            let mut copy = serde_json::to_value(plugins::provided(request, index, source)).unwrap_or_default();
            if let Value::Object(map) = &mut copy {
                map.insert("apiVersion".into(), "v1".into());
                map.insert("kind".into(), "ConfigMap".into());
            }
            copy
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_core::{
        plan::Outcome,
        policy::{Severity, SlotName},
    };

    use super::*;

    fn used(digest: &str, outcome: Outcome, fell_back: bool) -> PolicyUse {
        let object = "DataPlane ns/gw".into();
        PolicyUse { slot: SlotName::KonnectEnv, object, source: "test".into(), digest: digest.into(), outcome, fell_back }
    }

    fn report(policies: Vec<PolicyUse>, findings: Vec<Finding>) -> Report {
        let meta = ObjectMeta { namespace: Some("ns".into()), name: Some("gw".into()), ..ObjectMeta::default() };
        let plan = Plan::<Value> {
            changes: Vec::new(),
            status: None,
            status_changed: false,
            events: Vec::new(),
            findings,
            policies,
            holds: Vec::new(),
        };
        let mut report = Report::default();
        report.add(&Of::data_plane(&meta), plan, &Planned::default());
        report
    }

    #[test]
    fn a_policy_that_failed_and_was_answered_for_is_a_warning_and_no_failure() {
        let failing = [Outcome::Deadline, Outcome::Memory, Outcome::Trap, Outcome::Unavailable, Outcome::BadOutput, Outcome::Incompatible];
        for outcome in failing {
            let code = reasons::FELL_BACK.to_owned();
            let finding = Finding { severity: Severity::Warning, code, path: String::new(), message: "a failed and b answered".into() };
            let report = report(vec![used("a", outcome, true), used("b", Outcome::Answered, false)], vec![finding]);
            assert_eq!(report.exit(), Exit::Done, "{outcome:?}");
            assert_eq!(report.warnings, ["DataPlane ns/gw: a failed and b answered"]);
            assert_eq!(report.findings.len(), 1);
            let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
            let said: Vec<_> = json["policies"].as_array().unwrap().iter().map(|p| (&p["outcome"], p.get("fellBack"))).collect();
            assert_eq!(said, [(&json!(outcome.as_str()), Some(&json!(true))), (&json!("Answered"), None)]);
        }
    }

    #[test]
    fn a_policy_that_failed_and_was_not_answered_for_is_a_failure() {
        for (outcome, exit) in [(Outcome::Deadline, Exit::Exhausted), (Outcome::Trap, Exit::Trapped), (Outcome::Refused, Exit::Held)] {
            let report = report(vec![used("a", outcome, false), used("b", Outcome::Trap, false)], Vec::new());
            assert_eq!(report.exit(), exit.max(Exit::Trapped));
        }
    }
}
