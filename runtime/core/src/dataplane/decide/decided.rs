//! What `decide` hands on to `plan`.

use super::{
    super::{conflicts::Settled, objects::certificate::Certificate, plan::lookup, plugins::Used},
    Own,
};
use crate::{
    plan::{HeldPart, Hold, PolicyUse},
    policy::{Finding, SlotName, konnect_env},
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

    /// A copy of what is the same for every rendering, to collect what is said again and dropped.
    pub(super) fn quiet(&self) -> Self {
        Self::new(self.certificate.clone(), self.admin_service.clone())
    }
}
