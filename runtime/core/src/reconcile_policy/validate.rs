//! What the object says, read once: after this step nobody reads the raw spec or the raw annotations.

mod words;

use std::time::Duration;

use serde_json::{Value, json};
use weir_api::{
    keys,
    reconcile_policy::{Mode, OciSource, OnFailure, PolicySlot, ReconcilePolicy, Revision, Strategy},
};

use super::snapshot::{Failure, Snapshot, Step};
use crate::{
    annotations, hash,
    image::{self, ImageVersion},
    policy::{Finding, SlotName, limits, selection::Entry},
};

/// Largest settings, bytes of their JSON.
pub const MAX_SETTINGS: usize = 64 << 10;
/// A registry is not asked more often.
pub const MIN_RESYNC: Duration = Duration::from_secs(10);
/// How often a tag is looked up where nothing is said.
const DEFAULT_RESYNC: Duration = Duration::from_secs(60);
/// Former revisions that are kept where nothing is said.
const DEFAULT_HISTORY: usize = 3;

/// Where the component comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Origin<'a> {
    /// An artifact in a registry.
    Oci(&'a OciSource),
    /// The operator itself.
    Builtin,
}

/// What one question may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Time.
    pub timeout: Duration,
    /// Memory, bytes.
    pub memory: usize,
}

impl Default for Cost {
    fn default() -> Self {
        Self { timeout: Duration::from_millis(200), memory: 32 << 20 }
    }
}

/// Why a pass does not do what it usually does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The object is on its way out.
    Deleting,
    /// Annotation `weir.dev/paused`: what answers stays.
    Paused,
    /// It asks for something that this version cannot do: reason and message.
    NotServed(&'static str, String),
}

/// The object, read.
#[derive(Debug, Clone)]
pub struct Validated<'a> {
    /// What the pass sees.
    pub snapshot: &'a Snapshot,
    /// `namespace/name`.
    pub name: String,
    /// The slot; none for those that this version does not serve.
    pub slot: Option<SlotName>,
    /// Where the component comes from; none where that is not served.
    pub origin: Option<Origin<'a>>,
    /// `spec.source`, in short.
    pub source: String,
    /// Settings; `{}` where there are none.
    pub settings: Value,
    /// Digest of settings and limits together: what can change without another component.
    pub settings_digest: String,
    /// What one question may cost.
    pub cost: Cost,
    /// Whether answers are used.
    pub mode: Mode,
    /// Who lets a candidate take over.
    pub strategy: Strategy,
    /// How many former revisions are kept.
    pub history: usize,
    /// How often a tag is looked up; none is never.
    pub resync: Option<Duration>,
    /// What holds while the policy fails.
    pub on_failure: OnFailure,
    /// What may take over, as its owner wrote it.
    pub approved: Option<&'a str>,
    /// Somebody asks for a fresh look: what failed before does not count.
    pub asked: bool,
    /// What keeps the pass from its work.
    pub stop: Option<Stop>,
    /// Why no work can make what the spec asks for answer; what answers stays.
    pub unusable: Option<Failure>,
    /// What its owner should know.
    pub findings: Vec<Finding>,
}

/// Reads the object.
#[must_use]
pub fn validate(snapshot: &Snapshot) -> Validated<'_> {
    let policy = &snapshot.policy;
    let spec = &policy.spec;
    let mut findings: Vec<Finding> = annotations::paused(annotation(policy, keys::PAUSED)).into_iter().collect();
    let cost = words::cost(policy);
    let mut settings = spec.settings.clone().unwrap_or_else(|| json!({}));
    // Equal settings have one digest, in whatever order somebody wrote them.
    settings.sort_all_objects();
    let rollout = spec.rollout.clone().unwrap_or_default();
    let slot = slot(spec.slot);
    let origin = origin(policy);
    let history = rollout.history_limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(DEFAULT_HISTORY).min(10);
    Validated {
        snapshot,
        name: name(policy),
        slot,
        origin,
        source: source(policy),
        settings_digest: settings_digest(&settings, cost),
        unusable: unusable(policy, &settings),
        settings,
        cost,
        mode: spec.mode.unwrap_or_default(),
        strategy: rollout.strategy.unwrap_or_default(),
        history,
        resync: words::resync(policy, &mut findings),
        on_failure: spec.on_failure.unwrap_or_default(),
        approved: annotation(policy, keys::APPROVED_DIGEST),
        asked: annotation(policy, keys::CHECK_AT).is_some_and(|asked| annotation(policy, keys::CHECKED_AT) != Some(asked)),
        stop: stop(snapshot, slot, origin),
        findings,
    }
}

impl Validated<'_> {
    /// The image that the spec asks for, in its words; none for what ships inside of the operator.
    #[must_use]
    pub fn image(&self) -> Option<&str> {
        match self.origin {
            Some(Origin::Oci(_)) => Some(&self.source),
            Some(Origin::Builtin) | None => None,
        }
    }

    /// Digest of the signatures that are wanted. What ships inside of the operator needs none.
    #[must_use]
    pub fn verification(&self) -> Option<&str> {
        self.image().and(self.snapshot.verification.as_deref())
    }
}

/// `namespace/name`.
#[must_use]
pub fn name(policy: &ReconcilePolicy) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", text(&policy.metadata.namespace), text(&policy.metadata.name))
}

/// The slot as the core knows it; none for what this version does not serve.
#[must_use]
pub fn slot(slot: PolicySlot) -> Option<SlotName> {
    match slot {
        PolicySlot::KonnectEnv => Some(SlotName::KonnectEnv),
        PolicySlot::ConflictResolution => Some(SlotName::ConflictResolution),
        PolicySlot::PluginPackaging => Some(SlotName::PluginPackaging),
        PolicySlot::ObjectHook => None,
    }
}

/// What one question to a revision may cost, as its record says.
#[must_use]
pub fn recorded_cost(revision: &Revision) -> Cost {
    let limits = revision.limits.as_ref();
    words::read_cost(limits.map(|l| l.timeout.as_str()), limits.map(|l| l.memory.as_str()))
}

/// Digest of what can change without another component.
#[must_use]
pub fn settings_digest(settings: &Value, cost: Cost) -> String {
    hash::digest_json(&json!({"settings": settings, "timeoutMs": cost.timeout.as_millis(), "memory": cost.memory}))
}

pub(super) fn annotation<'a>(policy: &'a ReconcilePolicy, key: &str) -> Option<&'a str> {
    policy.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn origin(policy: &ReconcilePolicy) -> Option<Origin<'_>> {
    let source = &policy.spec.source;
    match (&source.oci, &source.builtin) {
        (Some(oci), _) => Some(Origin::Oci(oci)),
        (None, Some(_)) => Some(Origin::Builtin),
        (None, None) => None,
    }
}

fn source(policy: &ReconcilePolicy) -> String {
    let source = &policy.spec.source;
    match (&source.oci, &source.remote) {
        (Some(oci), _) => oci.semver.as_ref().map_or_else(|| oci.image.clone(), |range| format!("{} {range}", oci.image)),
        (None, Some(remote)) => format!("remote:{}", remote.plugin_name),
        (None, None) => "builtin".into(),
    }
}

fn stop(snapshot: &Snapshot, slot: Option<SlotName>, origin: Option<Origin<'_>>) -> Option<Stop> {
    let policy = &snapshot.policy;
    let own = policy.metadata.namespace.as_deref() == Some(snapshot.operator_namespace.as_str());
    if policy.metadata.deletion_timestamp.is_some() {
        return Some(Stop::Deleting);
    }
    if slot.is_none() {
        let message = "spec.slot: ObjectHook is not served by this version of the operator: no component is asked";
        return Some(Stop::NotServed("NotSupported", message.into()));
    }
    if origin.is_none() {
        let message = "spec.source.remote: remote plugins are not served by this version of the operator: use oci or builtin";
        return Some(Stop::NotServed("NotSupported", message.into()));
    }
    if let Err(error) = Entry::new(policy, true) {
        return Some(Stop::NotServed("InvalidTargets", error.to_string()));
    }
    if !own && !snapshot.tenants {
        let message = format!(
            "policies outside of namespace {} do not count: move it there, or run the operator with --tenant-policies",
            snapshot.operator_namespace
        );
        return Some(Stop::NotServed("TenantPoliciesDisabled", message));
    }
    (annotation(policy, keys::PAUSED) == Some("true")).then_some(Stop::Paused)
}

/// What the schema cannot see.
fn unusable(policy: &ReconcilePolicy, settings: &Value) -> Option<Failure> {
    let failure = |step, reason: &str, message| Some(Failure { step, reason: reason.into(), message, transient: false });
    let oci = policy.spec.source.oci.as_ref();
    if let Some((oci, ImageVersion::Malformed(why))) = oci.map(|oci| (oci, image::version(&oci.image))) {
        let message = format!("spec.source.oci.image: {:?} is no image reference: {why}", limits::cut(&oci.image));
        return failure(Step::Resolved, "InvalidImage", message);
    }
    let size = settings.to_string().len();
    if size > MAX_SETTINGS {
        let message = format!("spec.settings has {size} bytes as JSON, at most {MAX_SETTINGS} are allowed: shorten it");
        return failure(Step::SettingsValid, "SettingsTooLarge", message);
    }
    None
}
