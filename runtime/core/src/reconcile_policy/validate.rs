//! What the object says, read once: after this step nobody reads the raw spec or the raw annotations.

mod words;

use std::time::Duration;

use serde_json::{Value, json};
use weir_api::{
    keys,
    reconcile_policy::{Mode, OciSource, OnFailure, ReconcilePolicy, Revision, Strategy},
};

use super::snapshot::{Failure, Snapshot, Step};
use crate::{
    annotations, hash,
    image::{self, ImageVersion},
    policy::{Finding, SlotName, limits, selection::Entry},
    remote::{Asker, serves},
};

/// Largest settings, bytes of their JSON.
pub const MAX_SETTINGS: usize = 64 << 10;
/// A registry is not asked more often.
pub const MIN_RESYNC: Duration = Duration::from_secs(10);
/// How often a tag is looked up where nothing is said.
const DEFAULT_RESYNC: Duration = Duration::from_secs(60);
/// Former revisions that are kept where nothing is said.
const DEFAULT_HISTORY: usize = 3;

/// What a plugin's name follows in `status.source` and in revisions.
const REMOTE: &str = "remote:";

/// Where the component comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Origin<'a> {
    /// An artifact in a registry.
    Oci(&'a OciSource),
    /// The operator itself.
    Builtin,
    /// A remote plugin of this name.
    Remote(&'a str),
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
    /// The slot.
    pub slot: SlotName,
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
    /// Digest of record of the remote plugin that the spec names, where it may be asked now.
    pub plugin_digest: Option<String>,
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
    let slot = SlotName::of(spec.slot);
    let origin = origin(policy);
    let plugin = plugin(snapshot, slot, origin);
    let (plugin_digest, unready) = match plugin.transpose() {
        Ok(digest) => (digest, None),
        Err(failure) => (None, Some(failure)),
    };
    let history = rollout.history_limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(DEFAULT_HISTORY).min(10);
    Validated {
        snapshot,
        name: name(policy),
        slot,
        origin,
        source: source(policy),
        settings_digest: settings_digest(&settings, cost),
        unusable: unusable(policy, &settings).or(unready),
        plugin_digest,
        settings,
        cost,
        mode: spec.mode.unwrap_or_default(),
        strategy: rollout.strategy.unwrap_or_default(),
        history,
        resync: words::resync(policy, &mut findings),
        on_failure: spec.on_failure.unwrap_or_default(),
        approved: annotation(policy, keys::APPROVED_DIGEST),
        asked: annotation(policy, keys::CHECK_AT).is_some_and(|asked| annotation(policy, keys::CHECKED_AT) != Some(asked)),
        stop: stop(snapshot, origin),
        findings,
    }
}

impl Validated<'_> {
    /// The image that the spec asks for, in its words; `remote:NAME` for a plugin; none for what ships inside of the operator.
    #[must_use]
    pub fn image(&self) -> Option<&str> {
        match self.origin {
            Some(Origin::Oci(_) | Origin::Remote(_)) => Some(&self.source),
            Some(Origin::Builtin) | None => None,
        }
    }

    /// Digest of the signatures that are wanted. Only an artifact can have any.
    #[must_use]
    pub fn verification(&self) -> Option<&str> {
        match self.origin {
            Some(Origin::Oci(_)) => self.snapshot.verification.as_deref(),
            Some(Origin::Builtin | Origin::Remote(_)) | None => None,
        }
    }
}

impl Validated<'_> {
    /// Why `active`, the revision in force, answers nothing although the status says so; none when it does.
    #[must_use]
    pub fn not_running(&self, active: Option<&Revision>) -> Option<String> {
        if let Some(why) = &self.snapshot.not_running {
            return Some(why.clone());
        }
        let active = active?;
        let plugin = remote(active).filter(|_| active.image.as_deref() == self.image())?;
        match (&self.plugin_digest, &self.unusable) {
            (Some(digest), _) if *digest != active.layer_digest => Some(format!(
                "plugin {plugin} is another one now than the one in force ({digest}): it is asked when that one takes over, and last answers stay"
            )),
            (None, Some(failure)) => Some(format!("{}; last answers stay", failure.message)),
            (Some(_), _) | (None, None) => None,
        }
    }
}

/// The remote plugin that a revision is of. It has no manifest, which every artifact has: an image may be called `remote:1.0` too.
#[must_use]
pub fn remote(revision: &Revision) -> Option<&str> {
    revision.image.as_deref().filter(|_| revision.manifest_digest.is_none())?.strip_prefix(REMOTE)
}

/// `namespace/name`.
#[must_use]
pub fn name(policy: &ReconcilePolicy) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", text(&policy.metadata.namespace), text(&policy.metadata.name))
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
    match (&source.oci, &source.remote, &source.builtin) {
        (Some(oci), _, _) => Some(Origin::Oci(oci)),
        (None, Some(remote), _) => Some(Origin::Remote(&remote.plugin_name)),
        (None, None, Some(_)) => Some(Origin::Builtin),
        (None, None, None) => None,
    }
}

fn source(policy: &ReconcilePolicy) -> String {
    let source = &policy.spec.source;
    match (&source.oci, &source.remote) {
        (Some(oci), _) => oci.semver.as_ref().map_or_else(|| oci.image.clone(), |range| format!("{} {range}", oci.image)),
        (None, Some(remote)) => format!("{REMOTE}{}", remote.plugin_name),
        (None, None) => "builtin".into(),
    }
}

fn stop(snapshot: &Snapshot, origin: Option<Origin<'_>>) -> Option<Stop> {
    let policy = &snapshot.policy;
    let own = policy.metadata.namespace.as_deref() == Some(snapshot.operator_namespace.as_str());
    if policy.metadata.deletion_timestamp.is_some() {
        return Some(Stop::Deleting);
    }
    if origin.is_none() {
        let message = "spec.source: it names nothing that answers: set oci, remote or builtin";
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

/// The digest of record of the plugin that the spec names, or why it does not answer.
fn plugin(snapshot: &Snapshot, slot: SlotName, origin: Option<Origin<'_>>) -> Option<Result<String, Failure>> {
    let name = match origin? {
        Origin::Remote(name) => name,
        Origin::Oci(_) | Origin::Builtin => return None,
    };
    let namespace = snapshot.policy.metadata.namespace.as_deref().unwrap_or_default();
    let asker = Asker { plugin: name, slot, namespace, operator_namespace: &snapshot.operator_namespace };
    Some(serves(asker, snapshot.plugin.as_ref()).map_err(Failure::from))
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
