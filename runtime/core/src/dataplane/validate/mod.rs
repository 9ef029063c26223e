//! Parse once: after this nobody reads the raw spec's questionable parts. Pure. A user's mistake is a [`Problem`], never an `Err`.

mod extension;
mod network;
mod plugins;
mod pod;
mod scaling;
mod unions;

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use weir_api::{dataplane::DataPlaneSpec, keys};

pub use self::extension::Konnect;
pub use self::network::{IngressPort, ports};
pub use self::plugins::{Plugin, State};

use super::snapshot::Snapshot;
use crate::{
    annotations, names,
    plan::HeldPart,
    policy::{Context, Finding, ObjectMeta, Pairs, Severity},
};

/// Name of Kong's container.
pub const PROXY: &str = "proxy";

/// A user's mistake: where, what to do, and which part of the object it holds back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is held back.
    pub part: HeldPart,
    /// Field.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// A DataPlane whose questionable parts have been looked at.
#[derive(Debug)]
pub struct Validated<'a> {
    /// What was seen.
    pub snapshot: &'a Snapshot,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID; UUIDv5 without a cluster.
    pub uid: String,
    /// Value of the selector label.
    pub selector: String,
    /// Replacement of both Services' selectors, from annotation service-selector-override.
    pub selector_override: Option<Pairs>,
    /// Ports of the ingress Service.
    pub ports: Vec<IngressPort>,
    /// What the extension says.
    pub konnect: Konnect,
    /// Installations it names, each once, in its order.
    pub plugins: Vec<Plugin>,
    /// Mistakes.
    pub problems: Vec<Problem>,
    /// Observations that hold nothing back.
    pub findings: Vec<Finding>,
}

impl Validated<'_> {
    /// The spec.
    #[must_use]
    pub fn spec(&self) -> &DataPlaneSpec {
        &self.snapshot.data_plane.spec
    }

    /// The user's pod template.
    #[must_use]
    pub fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec().deployment.as_ref()?.pod_template_spec.as_ref()
    }

    /// The user's proxy container.
    #[must_use]
    pub fn proxy(&self) -> Option<&Container> {
        proxy(self.template()?)
    }

    /// Image of the proxy container.
    #[must_use]
    pub fn image(&self) -> &str {
        self.proxy().and_then(|c| c.image.as_deref()).unwrap_or_default()
    }

    /// Whether a mistake holds this part back.
    #[must_use]
    pub fn holds(&self, part: HeldPart) -> bool {
        self.problems.iter().any(|p| p.part == part || p.part == HeldPart::Everything)
    }

    /// Value of an annotation on the DataPlane.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.snapshot.data_plane.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether changes from elsewhere wait for the owner's word (semantics "Owner-held rollouts"). A word that is not known counts as a yes.
    #[must_use]
    pub fn manual(&self) -> bool {
        annotations::is_manual(self.annotation(keys::ROLLOUT))
    }

    /// JSON of the DataPlane, for hooks: without status, managed fields and what the context leaves out.
    #[must_use]
    pub fn manifest(&self) -> String {
        let mut object = self.snapshot.data_plane.clone();
        object.status = None;
        object.metadata.managed_fields = None;
        // They change with every write, and an answer must not.
        (object.metadata.resource_version, object.metadata.generation) = (None, None);
        object.metadata.annotations = Some(self.context().object.annotations);
        serde_json::to_string(&object).unwrap_or_default()
    }

    /// First field of every policy's input. Without kubectl's copy of the manifest (it repeats literal values) and Weir's records: looking again
    /// is no new question.
    #[must_use]
    pub fn context(&self) -> Context {
        let meta = &self.snapshot.data_plane.metadata;
        let mut annotations = meta.annotations.clone().unwrap_or_default();
        let records = [
            "kubectl.kubernetes.io/last-applied-configuration",
            keys::DECISIONS,
            keys::CHECK_AT,
            keys::CHECKED_AT,
            keys::APPROVED_ROLLOUT,
            keys::PLUGINS,
        ];
        annotations.retain(|key, _| !records.contains(&key.as_str()));
        Context {
            contract_version: crate::policy::CONTRACT_VERSION.into(),
            operator_version: self.snapshot.operator.version.clone(),
            cluster_name: self.snapshot.operator.cluster_name.clone(),
            cluster_labels: self.snapshot.operator.cluster_labels.clone(),
            object: ObjectMeta {
                kind: "DataPlane".into(),
                namespace: self.namespace.clone(),
                name: self.name.clone(),
                labels: meta.labels.clone().unwrap_or_default(),
                annotations,
            },
            namespace_labels: self.snapshot.namespace_labels.clone(),
        }
    }
}

pub(crate) fn proxy(template: &PodTemplateSpec) -> Option<&Container> {
    template.spec.as_ref()?.containers.iter().find(|c| c.name == PROXY)
}

/// Looks at everything a user can get wrong that the CRD's schema and rules cannot say.
#[must_use]
pub fn validate(snapshot: &Snapshot) -> Validated<'_> {
    let meta = &snapshot.data_plane.metadata;
    let namespace = meta.namespace.clone().unwrap_or_default();
    let name = meta.name.clone().unwrap_or_default();
    let uid = meta.uid.clone().unwrap_or_else(|| names::offline_uid("DataPlane", &namespace, &name));
    let existing = snapshot.data_plane.status.as_ref().and_then(|s| s.selector.clone());
    let existing = existing.filter(|s| weir_api::names::is_label_value(s) && !s.is_empty());
    // A Deployment's selector is immutable: a lost status must not change it.
    let selector = existing
        .or_else(|| live_selector(snapshot))
        .or_else(|| meta.uid.clone())
        .unwrap_or_else(|| names::offline_selector(&namespace, &name));
    let mut validated = Validated {
        snapshot,
        namespace,
        name,
        uid,
        selector,
        selector_override: None,
        ports: Vec::new(),
        konnect: extension::check(snapshot),
        plugins: Vec::new(),
        problems: Vec::new(),
        findings: Vec::new(),
    };
    let mut report = Report::default();
    check_name(&validated.name, &mut report);
    pod::check(&validated, &mut report);
    scaling::check(validated.spec(), &mut report);
    validated.ports = network::check(validated.spec(), &mut report);
    validated.selector_override = network::selector_override(validated.annotation(keys::SERVICE_SELECTOR_OVERRIDE), &mut report);
    validated.plugins = plugins::check(snapshot, &mut report);
    check_metadata(&validated, &mut report);
    validated.problems = report.problems;
    validated.findings = report.findings;
    validated
}

fn live_selector(snapshot: &Snapshot) -> Option<String> {
    let deployments = snapshot.children.deployments.iter().map(|c| &c.object).filter(|d| d.metadata.deletion_timestamp.is_none());
    deployments.filter_map(|d| d.spec.as_ref()?.selector.match_labels.as_ref()?.get(keys::SELECTOR)).next().cloned()
}

/// What the checks collect.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) problems: Vec<Problem>,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn problem(&mut self, part: HeldPart, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem { part, path: path.into(), message: message.into() });
    }

    pub(crate) fn finding(&mut self, severity: Severity, code: &str, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { severity, code: code.into(), path: path.into(), message: message.into() });
    }
}

fn check_name(name: &str, report: &mut Report) {
    if name.len() > 63 {
        let message = "is longer than 63 characters, which the label `app` on every child cannot hold: use a shorter name";
        report.problem(HeldPart::Everything, "metadata.name", message);
    } else if !weir_api::names::is_dns_subdomain(name) {
        let message = "is no DNS name: lower-case letters, digits, `-` and `.`, begins and ends with a letter or digit";
        report.problem(HeldPart::Everything, "metadata.name", message);
    }
}

/// Label and annotation keys that belong to operators are dropped, and that is said; what is no label at all is refused.
fn check_metadata(validated: &Validated<'_>, report: &mut Report) {
    report.findings.extend(annotations::paused(validated.annotation(keys::PAUSED)));
    report.findings.extend(annotations::rollout(validated.annotation(keys::ROLLOUT)));
    let options = validated.spec().deployment.as_ref();
    let labels = options.and_then(|d| d.labels.as_ref());
    for (key, value) in labels.into_iter().flatten() {
        let path = format!("spec.deployment.labels[{key:?}]");
        if !is_reserved(key) && (!weir_api::names::is_label_key(key) || !weir_api::names::is_label_value(value)) {
            report.problem(HeldPart::PodTemplate, path, "is no label: check key and value");
        }
    }
    let annotations = options.and_then(|d| d.annotations.as_ref());
    for key in annotations.into_iter().flat_map(|m| m.keys()).filter(|key| !is_annotation_key(key)) {
        report.problem(HeldPart::PodTemplate, format!("spec.deployment.annotations[{key:?}]"), "is no qualified name");
    }
    let pod = validated.template().and_then(|t| t.metadata.as_ref()).and_then(|m| m.labels.as_ref());
    for (field, map) in [("labels", labels), ("annotations", annotations), ("podTemplateSpec.metadata.labels", pod)] {
        for key in map.into_iter().flat_map(|m| m.keys()).filter(|key| is_reserved(key)) {
            let path = format!("spec.deployment.{field}[{key:?}]");
            report.finding(
                Severity::Warning,
                "ReservedKey",
                path,
                "this key belongs to the operator or the Deployment controller and is left out",
            );
        }
    }
}

/// Annotation keys are qualified names in any case.
pub(crate) fn is_annotation_key(key: &str) -> bool {
    weir_api::names::is_label_key(&key.to_lowercase())
}

/// Keys that a user cannot set on the Deployment (facts/kong-operator.md 1.1), plus Weir's own.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    key == keys::APP
        || key == "deployment.kubernetes.io/revision"
        || key.starts_with("gateway-operator.konghq.com/")
        || key.starts_with("weir.dev/")
}
