//! What `decide` hands on to `plan`.

use std::collections::BTreeMap;

use super::{
    super::{conflicts::Settled, objects::certificate::Certificate, plan::lookup, plugins::Used},
    Own,
};
use crate::{
    plan::{HeldPart, Hold, Object, PolicyUse},
    policy::{Finding, Severity, SlotName, konnect_env},
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
    /// Content of installations that an undone rollout brought back; none where nothing was undone.
    pub restored: Vec<Used>,
    /// Objects that went through all hooks: as they were rendered, and as they came out.
    pub hooked: BTreeMap<HeldPart, (Object, Object)>,
    /// There are hooks for this DataPlane.
    pub has_hooks: bool,
    /// New text of `weir.dev/decisions`.
    pub decisions: Option<String>,
    /// What is held.
    pub holds: Vec<Hold>,
    /// Of policies and of this step.
    pub findings: Vec<Finding>,
    /// Policies asked.
    pub policies: Vec<PolicyUse>,
    /// Slots without an accepted answer, and why: the reason of a condition.
    pub unanswered: Vec<(SlotName, &'static str)>,
    /// That another policy than the chosen one answered.
    pub fell_back: Vec<String>,
}

impl Decided {
    /// Nothing has been decided but what is the same for every rendering.
    pub(super) fn new(certificate: Certificate, admin_service: lookup::Name) -> Self {
        Self {
            certificate,
            admin_service,
            settled: None,
            konnect: None,
            konnect_kept: false,
            plugins: Vec::new(),
            mounted: Vec::new(),
            own: None,
            restored: Vec::new(),
            hooked: BTreeMap::new(),
            has_hooks: false,
            decisions: None,
            holds: Vec::new(),
            findings: Vec::new(),
            policies: Vec::new(),
            unanswered: Vec::new(),
            fell_back: Vec::new(),
        }
    }

    pub(super) fn hold(&mut self, what: HeldPart, reason: &str, message: impl Into<String>) {
        self.holds.push(Hold { what, reason: reason.into(), message: message.into() });
    }

    /// What its owner should know, once.
    pub(super) fn note(&mut self, code: &str, message: &str) {
        let (severity, code, path, message) = (Severity::Warning, code.to_owned(), String::new(), message.to_owned());
        let finding = Finding { severity, code, path, message };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Whether a hook holds a part.
    pub(crate) fn holds(&self, part: HeldPart) -> bool {
        self.holds.iter().any(|hold| hold.what == part)
    }

    /// An object of this pass after the hooks, where they were asked about this very one.
    pub(crate) fn after_hooks(&self, part: HeldPart, object: Object) -> Object {
        match self.hooked.get(&part) {
            Some((before, after)) if *before == object => after.clone(),
            Some(_) | None => object,
        }
    }

    /// The Deployment of this pass after the hooks, where they were asked about it.
    pub(crate) fn deployment_after_hooks(&self) -> Option<&k8s_openapi::api::apps::v1::Deployment> {
        match &self.hooked.get(&HeldPart::PodTemplate)?.1 {
            Object::Deployment(deployment) => Some(deployment),
            Object::Service(_)
            | Object::HorizontalPodAutoscaler(_)
            | Object::PodDisruptionBudget(_)
            | Object::Certificate(_)
            | Object::ConfigMap(_) => None,
        }
    }

    /// A copy of what is the same for every rendering, to collect what is said again and dropped.
    pub(super) fn quiet(&self) -> Self {
        Self::new(self.certificate.clone(), self.admin_service.clone())
    }
}
