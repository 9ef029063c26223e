//! What the object says, read once: after this step nobody reads the raw spec or the raw annotations.

use weir_api::keys;

use super::{
    annotation,
    content::{self, Content},
    question, record, report, resync,
    snapshot::Snapshot,
};
use crate::{
    annotations,
    decisions::{Found, Record, Sealing},
    image::{self, ImageVersion},
    policy::{CONTRACT_VERSION, Context, Finding, Identity, ObjectMeta, limits},
};

/// Annotations that are no question to a policy: kubectl's copy of the manifest, Weir's records, and words to Weir about one moment.
const RECORDS: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    keys::DECISIONS,
    keys::CLAIMS,
    keys::ARTIFACT,
    keys::CHECK_AT,
    keys::CHECKED_AT,
    keys::APPROVED_DIGEST,
];

/// Why a pass does not do what it usually does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The object is on its way out: garbage collection takes its ConfigMaps.
    Deleting,
    /// Kong's operator still runs and speaks for the object.
    KongOperator,
    /// Annotation `weir.dev/paused`: nothing but the status is written.
    Paused,
}

/// Annotation `weir.dev/rollout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollout {
    /// What is fetched and packaged is in force at once.
    Automatic,
    /// It waits for its owner's word.
    Manual,
}

/// The object, read.
#[derive(Debug, Clone)]
pub struct Validated<'a> {
    /// What the pass sees.
    pub snapshot: &'a Snapshot,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// `spec.image`.
    pub image: &'a str,
    /// Why `spec.image` names nothing.
    pub problem: Option<String>,
    /// Whether something new waits.
    pub rollout: Rollout,
    /// The digest that may be installed, as its owner wrote it.
    pub approved: Option<&'a str>,
    /// What keeps the pass from writing.
    pub stop: Option<Stop>,
    /// The record in force, believed.
    pub record: Option<Record<Content>>,
    /// Digest of a newer artifact of this image that was seen and is not in force (annotation `weir.dev/artifact`).
    pub candidate: Option<String>,
    /// What its owner should know.
    pub findings: Vec<Finding>,
}

/// Reads the object.
#[must_use]
pub fn validate<'a>(snapshot: &'a Snapshot, sealing: &Sealing) -> Validated<'a> {
    let object = &snapshot.installation;
    let image = object.spec.image.as_str();
    let mut findings = Vec::new();
    let record = match record(object, sealing) {
        Found::Record(record) => Some(record),
        Found::None => None,
        Found::Unverified => {
            let message = "the record of what is in force is not what the operator wrote and counts as none: leave this annotation to it";
            findings.push(annotations::warning("DecisionsUnverified", keys::DECISIONS, message.into()));
            None
        }
    };
    findings.extend(resync::finding(object));
    findings.extend(annotations::paused(annotation(object, keys::PAUSED)));
    findings.extend(annotations::rollout(annotation(object, keys::ROLLOUT)));
    let in_force = record.as_ref().filter(|r| r.answer.image == image).map(|r| r.answer.digest.clone());
    Validated {
        snapshot,
        namespace: object.metadata.namespace.as_deref().unwrap_or_default(),
        name: object.metadata.name.as_deref().unwrap_or_default(),
        uid: object.metadata.uid.as_deref().unwrap_or_default(),
        image,
        problem: problem(image),
        rollout: if annotations::is_manual(annotation(object, keys::ROLLOUT)) { Rollout::Manual } else { Rollout::Automatic },
        approved: annotation(object, keys::APPROVED_DIGEST),
        stop: stop(snapshot),
        candidate: report::candidate(object).filter(|digest| in_force.as_ref() != Some(digest)),
        record,
        findings,
    }
}

impl Validated<'_> {
    /// What DataPlanes use when the pass begins.
    #[must_use]
    pub fn in_force(&self) -> Option<&Content> {
        self.record.as_ref().map(|record| &record.answer)
    }

    /// The record in force, where it is of the image that the spec names.
    #[must_use]
    pub fn current(&self) -> Option<&Record<Content>> {
        self.record.as_ref().filter(|record| record.answer.image == self.image)
    }

    /// Whether every ConfigMap of this content is there.
    #[must_use]
    pub fn is_complete(&self, content: &Content) -> bool {
        content::is_stored(self.name, content, &self.snapshot.config_maps)
    }

    /// Whether a ConfigMap of this name is there to stay and holds a part of this content.
    #[must_use]
    pub fn has(&self, name: &str, content: &Content) -> bool {
        content::has(&self.snapshot.config_maps, name, content)
    }

    /// Whether the record answers another question than this policy would be asked now about the same artifact.
    #[must_use]
    pub fn is_other_question(&self, record: &Record<Content>, policy: &Identity) -> bool {
        record.policy.digest != policy.digest
            || record.policy.settings_digest != policy.settings_digest
            || record.input != question::digest(self, &record.answer.digest, self.snapshot.verification.as_deref())
    }

    /// Whether nothing has to be fetched: what is in force is of this image, this question and this policy, stored, and nothing newer is
    /// known.
    #[must_use]
    pub fn is_settled(&self, policy: &Identity) -> bool {
        self.candidate.is_none()
            && self.current().is_some_and(|record| self.is_complete(&record.answer) && !self.is_other_question(record, policy))
    }

    /// The object as reports name it.
    #[must_use]
    pub fn object(&self) -> String {
        format!("KongPluginInstallation {}/{}", self.namespace, self.name)
    }

    /// First field of every policy's input.
    #[must_use]
    pub fn context(&self) -> Context {
        let meta = &self.snapshot.installation.metadata;
        let mut annotations = meta.annotations.clone().unwrap_or_default();
        annotations.retain(|key, _| !RECORDS.contains(&key.as_str()));
        Context {
            contract_version: CONTRACT_VERSION.into(),
            operator_version: self.snapshot.operator.version.clone(),
            cluster_name: self.snapshot.operator.cluster_name.clone(),
            cluster_labels: self.snapshot.operator.cluster_labels.clone(),
            object: ObjectMeta {
                kind: "KongPluginInstallation".into(),
                namespace: self.namespace.into(),
                name: self.name.into(),
                labels: meta.labels.clone().unwrap_or_default(),
                annotations,
            },
            namespace_labels: self.snapshot.namespace_labels.clone(),
        }
    }
}

fn stop(snapshot: &Snapshot) -> Option<Stop> {
    let object = &snapshot.installation;
    if object.metadata.deletion_timestamp.is_some() {
        Some(Stop::Deleting)
    } else if snapshot.operator.kong_operator.is_some() {
        Some(Stop::KongOperator)
    } else if annotation(object, keys::PAUSED) == Some("true") {
        Some(Stop::Paused)
    } else {
        None
    }
}

fn problem(image: &str) -> Option<String> {
    match image::version(image) {
        ImageVersion::Served | ImageVersion::TooOld(_) | ImageVersion::Unknown => None,
        ImageVersion::Malformed(why) => {
            Some(format!("spec.image: {:?} is no image reference: {why}; write REGISTRY/REPOSITORY:TAG", limits::cut(image)))
        }
    }
}
