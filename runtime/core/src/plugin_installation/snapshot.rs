//! What one pass over a KongPluginInstallation sees. The artifact's bytes are in it only while they are needed: when there is something to
//! package.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use weir_api::plugin_installation::KongPluginInstallation;

use crate::{dataplane::snapshot::Operator, policy::Pairs};

/// A plugin artifact that was fetched: every size in it has been bounded by whoever fetched it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Artifact {
    /// Digest of the manifest, `sha256:…`; of what stands for it where no registry was asked.
    pub digest: String,
    /// Annotations of the manifest.
    pub annotations: Pairs,
    /// Who signed it, verified; empty when nobody looked.
    pub signers: Vec<String>,
    /// Digest of the signatures that were looked for; none where nobody looked.
    pub verification: Option<String>,
    /// Content by path: relative, slash separated, normal.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What the puller noticed and accepted.
    pub notes: Vec<String>,
}

/// What is known of the artifact that `spec.image` names.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Fetch {
    /// Nobody asks a registry: [`super::need()`] said that nothing is needed, or there is no registry (`weir plan` without an artifact).
    #[default]
    NotAsked,
    /// It is being fetched.
    Pending,
    /// It is not its turn yet: others are fetched before.
    Queued,
    /// It could not be fetched.
    Failed {
        /// What happened and what to do; names the image.
        message: String,
        /// Whether trying again may help; the shell then does.
        transient: bool,
        /// Digest of the manifest it is about, where that is known.
        digest: Option<String>,
    },
    /// The tag leads to this digest; the content was not asked for.
    Resolved(String),
    /// It is here.
    Fetched(Arc<Artifact>),
}

/// Whether `spec.imagePullSecretRef` can be followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PullSecret {
    /// None is named, or it is there and readable.
    #[default]
    Usable,
    /// It cannot be used; says which object and what to do. Whoever shows it names the field.
    Unusable(String),
}

/// A DataPlane whose spec names the installation, and that is not on its way out. Sorted by namespace, then name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it may name the installation: it is of the same namespace, a ReferenceGrant says so, or none is needed.
    pub permitted: bool,
    /// Whether its pods mount content of this installation already: its claim is older than what the annotation knows.
    pub mounts: bool,
    /// When it was made: since when it claims, where nothing else is known.
    pub created: Option<Timestamp>,
}

/// What one pass sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The time of the pass.
    pub now: Timestamp,
    /// The operator and its cluster.
    pub operator: Operator,
    /// The object.
    pub installation: KongPluginInstallation,
    /// Labels of its namespace.
    pub namespace_labels: Pairs,
    /// Whether its pull Secret can be used.
    pub pull_secret: PullSecret,
    /// Digest of the signatures that the artifact of `spec.image` needs; none where it needs none. An artifact is fetched with what it needs,
    /// or not at all.
    pub verification: Option<String>,
    /// The artifact.
    pub fetch: Fetch,
    /// Who names it.
    pub claimants: Vec<Claimant>,
    /// ConfigMaps that it owns. Their content is immutable and named by its hash.
    pub config_maps: Vec<ObjectMeta>,
    /// Names of planned ConfigMaps that somebody else holds.
    pub foreign: Vec<String>,
}
