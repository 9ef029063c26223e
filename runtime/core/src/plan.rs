//! What a pass wants done: closed enums that the shell carries out exhaustively. Kind-independent.

use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Service},
    policy::v1::PodDisruptionBudget,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_api::keys;

use crate::{
    events::Event,
    hash,
    policy::{Finding, PolicyError, SlotName},
};

/// An object that is applied by server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    /// v1 Service.
    Service(Box<Service>),
    /// apps/v1 Deployment.
    Deployment(Box<Deployment>),
    /// autoscaling/v2 HorizontalPodAutoscaler.
    HorizontalPodAutoscaler(Box<HorizontalPodAutoscaler>),
    /// policy/v1 PodDisruptionBudget.
    PodDisruptionBudget(Box<PodDisruptionBudget>),
    /// cert-manager.io/v1 Certificate; its CRD is foreign and optional, so it has no type here.
    Certificate(Box<ForeignObject>),
    /// v1 ConfigMap: content of a plugin installation. Immutable, and named by the hash of its content.
    ConfigMap(Box<ConfigMap>),
}

/// An object of a kind this project has no type for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForeignObject {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Spec.
    pub spec: Value,
}

/// Kind of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChildKind {
    /// v1 Service.
    Service,
    /// v1 Secret.
    Secret,
    /// apps/v1 Deployment.
    Deployment,
    /// autoscaling/v2 HorizontalPodAutoscaler.
    HorizontalPodAutoscaler,
    /// policy/v1 PodDisruptionBudget.
    PodDisruptionBudget,
    /// cert-manager.io/v1 Certificate.
    Certificate,
    /// v1 ConfigMap.
    ConfigMap,
}

impl ChildKind {
    /// `apiVersion` and `kind`.
    #[must_use]
    pub fn api(self) -> (&'static str, &'static str) {
        match self {
            Self::Service => ("v1", "Service"),
            Self::Secret => ("v1", "Secret"),
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::HorizontalPodAutoscaler => ("autoscaling/v2", "HorizontalPodAutoscaler"),
            Self::PodDisruptionBudget => ("policy/v1", "PodDisruptionBudget"),
            Self::Certificate => ("cert-manager.io/v1", "Certificate"),
            Self::ConfigMap => ("v1", "ConfigMap"),
        }
    }
}

impl Object {
    /// Kind of the object.
    #[must_use]
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::Service(_) => ChildKind::Service,
            Self::Deployment(_) => ChildKind::Deployment,
            Self::HorizontalPodAutoscaler(_) => ChildKind::HorizontalPodAutoscaler,
            Self::PodDisruptionBudget(_) => ChildKind::PodDisruptionBudget,
            Self::Certificate(_) => ChildKind::Certificate,
            Self::ConfigMap(_) => ChildKind::ConfigMap,
        }
    }

    /// Metadata of the object.
    #[must_use]
    pub fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Service(o) => &o.metadata,
            Self::Deployment(o) => &o.metadata,
            Self::HorizontalPodAutoscaler(o) => &o.metadata,
            Self::PodDisruptionBudget(o) => &o.metadata,
            Self::Certificate(o) => &o.metadata,
            Self::ConfigMap(o) => &o.metadata,
        }
    }

    /// Metadata of the object, to change.
    pub fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Service(o) => &mut o.metadata,
            Self::Deployment(o) => &mut o.metadata,
            Self::HorizontalPodAutoscaler(o) => &mut o.metadata,
            Self::PodDisruptionBudget(o) => &mut o.metadata,
            Self::Certificate(o) => &mut o.metadata,
            Self::ConfigMap(o) => &mut o.metadata,
        }
    }

    /// Digest of what is sent. Of the typed object: a tree of JSON values in between would cost more than the hash.
    #[must_use]
    pub fn digest(&self) -> String {
        match self {
            Self::Service(o) => hash::digest_json(o),
            Self::Deployment(o) => hash::digest_json(o),
            Self::HorizontalPodAutoscaler(o) => hash::digest_json(o),
            Self::PodDisruptionBudget(o) => hash::digest_json(o),
            Self::Certificate(o) => hash::digest_json(&(&o.metadata, &o.spec)),
            Self::ConfigMap(o) => hash::digest_json(o),
        }
    }

    /// The object as it is sent.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (api_version, kind) = self.kind().api();
        let body = match self {
            Self::Service(o) => serde_json::to_value(o),
            Self::Deployment(o) => serde_json::to_value(o),
            Self::HorizontalPodAutoscaler(o) => serde_json::to_value(o),
            Self::PodDisruptionBudget(o) => serde_json::to_value(o),
            Self::Certificate(o) => {
                serde_json::to_value(&o.metadata).map(|metadata| serde_json::json!({"metadata": metadata, "spec": o.spec}))
            }
            Self::ConfigMap(o) => serde_json::to_value(o),
        };
        // Kubernetes types always serialise; the fallback only keeps this function total.
        let mut body = body.unwrap_or(Value::Null);
        if let Value::Object(map) = &mut body {
            map.insert("apiVersion".into(), api_version.into());
            map.insert("kind".into(), kind.into());
            map.remove("status");
        }
        body
    }
}

/// Key algorithm of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256.
    EcdsaP256,
    /// RSA of 2048 bits, for a CA of that kind.
    Rsa2048,
}

/// A certificate the shell has to mint and store. The key never enters the core.
#[derive(Debug, Clone, PartialEq)]
pub struct CertificateRequest {
    /// Metadata of the Secret (type kubernetes.io/tls, keys ca.crt, tls.crt, tls.key).
    pub metadata: ObjectMeta,
    /// Subject common name.
    pub common_name: String,
    /// Subject organisation.
    pub organization: String,
    /// Subject country.
    pub country: String,
    /// DNS names.
    pub dns_names: Vec<String>,
    /// Key algorithm: the CA's.
    pub key: KeyAlgorithm,
    /// Longest lifetime, seconds; the shell cuts it to the CA's.
    pub ttl_seconds: i64,
}

/// An existing child, by name and UID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Kind.
    pub kind: ChildKind,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID, so that only this very object is deleted; empty without a cluster.
    pub uid: String,
}

/// A set of ConfigMaps with the content of a plugin installation, to stand in the namespace of a DataPlane that mounts it. The shell copies
/// it from the installation's own set, or from any other set of that content: bytes never enter a DataPlane's pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentRequest {
    /// Where the set has to stand.
    pub namespace: String,
    /// Hash of the content.
    pub hash: String,
    /// Number of ConfigMaps.
    pub maps: usize,
    /// Namespace and name of the installation whose own set has the content.
    pub installation: (String, String),
    /// The DataPlane, which becomes one of the owners: a plain one, so that the set lives as long as anybody uses it.
    pub owner: OwnerReference,
}

/// One effect, in the order it has to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Server-side apply with field manager `weir`.
    Apply {
        /// What is sent, with the annotation `weir.dev/applied`.
        object: Object,
        /// The first apply of a child is without force: a foreign object on the name is an error, not a takeover.
        first: bool,
    },
    /// Make a certificate and store it in a Secret.
    MintCertificate(Box<CertificateRequest>),
    /// See to it that a set of plugin content is there and has this owner. Comes before the Deployment that mounts it.
    ProvideContent(Box<ContentRequest>),
    /// Take this owner off a ConfigMap of plugin content; without any owner left it is deleted.
    ReleaseContent {
        /// The ConfigMap.
        target: Target,
        /// UID of the owner that does not use it any more.
        owner: String,
    },
    /// Delete a child that is ours and not wanted.
    Delete(Target),
    /// Hand another manager's entries in `metadata.managedFields` of a child to ours, and strip the finalizer that Kong's operator leaves.
    /// Comes before the Apply of that child: without it, fields we no longer send would stay for ever in the former manager's name.
    TakeOver(Target),
    /// Hand back to us what `metadata.managedFields` of a child records as of somebody who undid one of its rollouts. Comes before the Apply of
    /// that child, for the same reason.
    Reclaim(Target),
    /// Add a finalizer to the object of the pass, or remove it.
    SetFinalizer {
        /// The finalizer.
        key: String,
        /// Whether it has to be there.
        present: bool,
    },
    /// Write an annotation on the object of the pass (an answer to a one-time instruction).
    SetAnnotation {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Remove an annotation from the object of the pass (a one-time instruction that was carried out).
    RemoveAnnotation {
        /// Its key.
        key: String,
    },
}

/// The answer to annotation `weir.dev/check-at`: its value, echoed, when this pass is the first to see it. An object that is on its way out
/// gets none.
#[must_use]
pub fn checked(object: &ObjectMeta) -> Option<Change> {
    let annotation = |key: &str| object.annotations.as_ref().and_then(|all| all.get(key));
    let asked = annotation(keys::CHECK_AT).filter(|_| object.deletion_timestamp.is_none())?;
    let answered = annotation(keys::CHECKED_AT) == Some(asked);
    (!answered).then(|| Change::SetAnnotation { key: keys::CHECKED_AT.into(), value: asked.clone() })
}

/// Which policy decided what: one line of `weir plan`'s list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyUse {
    /// Slot.
    pub slot: SlotName,
    /// `Kind namespace/name`.
    pub object: String,
    /// Where the policy came from.
    pub source: String,
    /// `sha256:…` of the component.
    pub digest: String,
    /// How the question ended.
    pub outcome: Outcome,
    /// It failed, and another policy answered in its place (`onFailure: Fallback`): nothing waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fell_back: bool,
}

/// How asking a policy ended. Closed; the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Its answer is in force.
    Answered,
    /// It refused.
    Refused,
    /// It ran out of time.
    Deadline,
    /// It ran out of memory.
    Memory,
    /// It trapped.
    Trap,
    /// It could not be reached.
    Unavailable,
    /// Its answer breaks the rules.
    BadOutput,
    /// It is no component for this slot.
    Incompatible,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 8] =
        [Self::Answered, Self::Refused, Self::Deadline, Self::Memory, Self::Trap, Self::Unavailable, Self::BadOutput, Self::Incompatible];

    /// The outcome of a result.
    pub fn of<A>(result: &Result<A, PolicyError>) -> Self {
        result.as_ref().map_or_else(Self::from, |_| Self::Answered)
    }

    /// Metric label and condition reason; the same words as [`PolicyError::reason`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Refused => "Refused",
            Self::Deadline => "Deadline",
            Self::Memory => "Memory",
            Self::Trap => "Trap",
            Self::Unavailable => "Unavailable",
            Self::BadOutput => "BadOutput",
            Self::Incompatible => "Incompatible",
        }
    }
}

impl From<&PolicyError> for Outcome {
    fn from(error: &PolicyError) -> Self {
        match error {
            PolicyError::Refused(_) => Self::Refused,
            PolicyError::Deadline { .. } => Self::Deadline,
            PolicyError::Memory(_) => Self::Memory,
            PolicyError::Trap(_) => Self::Trap,
            PolicyError::Unavailable(_) => Self::Unavailable,
            PolicyError::BadOutput(_) => Self::BadOutput,
            PolicyError::Incompatible(_) => Self::Incompatible,
        }
    }
}

/// Something that was asked for and is not done: what, why (a condition reason) and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What is held back.
    pub what: HeldPart,
    /// Condition reason.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// The part of an object that a failure holds back. Failure is narrow: everything else proceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HeldPart {
    /// The whole object.
    Everything,
    /// The pod template of the Deployment.
    PodTemplate,
    /// One answer of a policy inside the pod template; the last one is in force.
    Answer,
    /// The admin Service.
    AdminService,
    /// The ingress Service.
    IngressService,
    /// One plugin: its last content stays in the pods, or it is not in them.
    Plugin,
    /// The autoscaler.
    Autoscaler,
    /// The disruption budget.
    DisruptionBudget,
}

/// Everything one pass over one object wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<S> {
    /// Effects in order.
    pub changes: Vec<Change>,
    /// The status the object should have; none when the object is not ours to report on.
    pub status: Option<S>,
    /// Whether `status` differs from the live one: only then it is patched.
    pub status_changed: bool,
    /// Events to emit.
    pub events: Vec<Event>,
    /// Findings of policies and of the core.
    pub findings: Vec<Finding>,
    /// Policies that were asked.
    pub policies: Vec<PolicyUse>,
    /// What is held back.
    pub holds: Vec<Hold>,
}
