//! What a plan prints: one document for machines, the same content as YAML documents for people.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_api::{dataplane::DataPlaneStatus, keys};
use weir_core::{
    events::Event,
    plan::{Change, Plan, PolicyUse, Target},
    policy::Finding,
};

use crate::exit::Exit;

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
    /// What is held back, for the summary.
    #[serde(skip)]
    pub held: Vec<String>,
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

    /// Adds the plan of one DataPlane.
    pub fn add(&mut self, namespace: &str, name: &str, plan: Plan<DataPlaneStatus>) {
        let object = format!("DataPlane {namespace}/{name}");
        for change in plan.changes {
            match change {
                Change::Apply { object, first: _ } => self.objects.push(object.to_json()),
                Change::MintCertificate(request) => self.objects.push(json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": request.metadata,
                })),
                Change::Delete(target) => self.deletions.push(target),
                Change::TakeOver(target) => self.takeovers.push(target),
                // Said by their events.
                Change::SetFinalizer { key: _, present: _ }
                | Change::SetAnnotation { key: _, value: _ }
                | Change::RemoveAnnotation { key: _ } => {}
            }
        }
        if let Some(status) = plan.status {
            self.statuses.push(json!({
                "apiVersion": format!("{}/v1beta1", keys::GATEWAY_OPERATOR_GROUP), "kind": "DataPlane",
                "metadata": {"namespace": namespace, "name": name}, "status": status,
            }));
        }
        if !plan.holds.is_empty() {
            self.ends(Exit::Held);
        }
        self.held.extend(plan.holds.iter().map(|h| format!("{object}: {}: {}", h.reason, h.message)));
        for used in &plan.policies {
            self.ends(used.outcome.into());
        }
        self.events.extend(plan.events.into_iter().map(|what| Of { object: object.clone(), what }));
        self.findings.extend(plan.findings.into_iter().map(|what| Of { object: object.clone(), what }));
        self.policies.extend(plan.policies);
    }

    /// One JSON document.
    ///
    /// # Errors
    /// None in practice: everything in it serialises.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// A YAML document per object, then one of kind PlanReport with the rest.
    ///
    /// # Errors
    /// None in practice: everything in it serialises.
    pub fn yaml(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for object in &self.objects {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(object)?);
        }
        let mut rest = serde_json::to_value(self)?;
        if let Value::Object(map) = &mut rest {
            map.remove("objects");
            map.insert("apiVersion".into(), "weir.dev/v1alpha1".into());
            map.insert("kind".into(), "PlanReport".into());
        }
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&rest)?);
        Ok(text)
    }
}
