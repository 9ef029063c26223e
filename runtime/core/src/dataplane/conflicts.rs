//! Two claims on one thing: finding them, and settling them by a policy's verdicts. Pure; asking is `decide`'s.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, Volume, VolumeMount};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::objects::{
    env,
    proxy::{Layer, Layers},
};
use crate::policy::{
    Identity,
    conflict_resolution::{Claim, ClaimValue, Conflict, Origin, SubjectKind, Verdict},
};

/// What won: kept per subject in the record of decisions, so that a failure later keeps it in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settlement {
    /// Whose claim; none for a merged value.
    pub origin: Option<Origin>,
    /// The value in force.
    pub value: ClaimValue,
    /// Whose verdict it is, where that is not the record's policy: the present one settles nothing and the former verdict stands, or another
    /// one answered this question of several. Within a pass it is always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<Identity>,
}

/// Settlements by `kind/subject`.
pub type Settlements = BTreeMap<String, Settlement>;

/// The parts of the pod after all conflicts are settled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settled {
    /// Variables of the proxy container, ordered.
    pub env: Vec<EnvVar>,
    /// Volumes of the pod: the user's order first.
    pub volumes: Vec<Volume>,
    /// Mounts of the proxy container: the user's order first.
    pub mounts: Vec<VolumeMount>,
    /// Mounts that were left out, because nothing brings their volume.
    pub dropped: Vec<VolumeMount>,
}

/// Key of a conflict in [`Settlements`].
#[must_use]
pub fn key(kind: SubjectKind, subject: &str) -> String {
    let kind = match kind {
        SubjectKind::EnvVar => "env-var",
        SubjectKind::PluginName => "plugin-name",
        SubjectKind::BundledPlugin => "bundled-plugin",
        SubjectKind::PluginInstallation => "plugin-installation",
        SubjectKind::Volume => "volume",
        SubjectKind::VolumeMount => "volume-mount",
    };
    format!("{kind}/{subject}")
}

/// A part of the pod that several parties can claim.
trait Part: Clone {
    const KIND: SubjectKind;
    fn subject(&self) -> &str;
    fn to_value(&self) -> ClaimValue;
    fn from_value(subject: &str, value: &ClaimValue) -> Option<Self>;
}

impl Part for EnvVar {
    const KIND: SubjectKind = SubjectKind::EnvVar;

    fn subject(&self) -> &str {
        &self.name
    }

    fn to_value(&self) -> ClaimValue {
        match &self.value_from {
            None => ClaimValue::Text(self.value.clone().unwrap_or_default()),
            Some(source) => object(source),
        }
    }

    fn from_value(subject: &str, value: &ClaimValue) -> Option<Self> {
        match value {
            ClaimValue::Text(text) => Some(Self { name: subject.into(), value: Some(text.clone()), value_from: None }),
            ClaimValue::Object(json) => {
                parse::<EnvVarSource>(json).map(|source| Self { name: subject.into(), value: None, value_from: Some(source) })
            }
        }
    }
}

impl Part for Volume {
    const KIND: SubjectKind = SubjectKind::Volume;

    fn subject(&self) -> &str {
        &self.name
    }

    fn to_value(&self) -> ClaimValue {
        object(self)
    }

    fn from_value(_: &str, value: &ClaimValue) -> Option<Self> {
        from_object(value)
    }
}

impl Part for VolumeMount {
    const KIND: SubjectKind = SubjectKind::VolumeMount;

    fn subject(&self) -> &str {
        self.mount_path.trim_end_matches('/')
    }

    fn to_value(&self) -> ClaimValue {
        object(self)
    }

    fn from_value(_: &str, value: &ClaimValue) -> Option<Self> {
        from_object(value)
    }
}

fn object<T: Serialize>(value: &T) -> ClaimValue {
    ClaimValue::Object(serde_json::to_string(value).unwrap_or_default())
}

fn from_object<T: DeserializeOwned>(value: &ClaimValue) -> Option<T> {
    match value {
        ClaimValue::Object(json) => parse(json),
        ClaimValue::Text(_) => None,
    }
}

fn parse<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// Conflicts of one object, in a fixed order: variables, volumes, mounts, each by subject.
#[must_use]
pub fn find(layers: &Layers) -> Vec<Conflict> {
    let mut conflicts = find_in(&layers.env);
    conflicts.extend(find_in(&layers.volumes));
    conflicts.extend(find_in(&layers.mounts));
    conflicts
}

/// Origins are layers: without a claim of the user the strongest origin stands by design, and nobody is asked. A conflict is a claim of the
/// user that changes what would stand without it, or two different claims of one origin.
fn find_in<T: Part>(layers: &[Layer<T>]) -> Vec<Conflict> {
    grouped(layers).into_iter().filter_map(|(subject, group)| conflict(subject, &group)).collect()
}

fn grouped<T: Part>(layers: &[Layer<T>]) -> BTreeMap<&str, Vec<&Layer<T>>> {
    let mut groups: BTreeMap<&str, Vec<&Layer<T>>> = BTreeMap::new();
    for layer in layers {
        groups.entry(layer.item.subject()).or_default().push(layer);
    }
    for group in groups.values_mut() {
        group.sort_by_key(|layer| layer.origin);
    }
    groups
}

fn conflict<T: Part>(subject: &str, group: &[&Layer<T>]) -> Option<Conflict> {
    // One party: the usual case, and no reason to write anything out.
    let [strongest, _, ..] = group else { return None };
    let value = strongest.item.to_value();
    let next = group.iter().find(|l| l.origin != strongest.origin).filter(|_| strongest.origin == Origin::User);
    let mut rivals = group.iter().skip(1).filter(|l| l.origin == strongest.origin).chain(next);
    if rivals.all(|rival| rival.item.to_value() == value) {
        return None;
    }
    let claims = group.iter().map(|l| Claim { who: l.who.clone(), since: None, origin: l.origin, value: l.item.to_value() }).collect();
    Some(Conflict { kind: T::KIND, subject: subject.to_owned(), claims })
}

/// What a verdict settles; none for reject and hold.
#[must_use]
pub fn settlement(conflict: &Conflict, verdict: &Verdict) -> Option<Settlement> {
    match verdict {
        Verdict::Keep(index) => {
            let claim = usize::try_from(*index).ok().and_then(|i| conflict.claims.get(i))?;
            Some(Settlement { origin: Some(claim.origin), value: claim.value.clone(), kept_from: None })
        }
        Verdict::Merge(value) => Some(Settlement { origin: None, value: ClaimValue::Text(value.clone()), kept_from: None }),
        // Only legal where an installation is claimed, which is not settled here.
        Verdict::KeepSome(_) | Verdict::Reject(_) | Verdict::Hold(_) => None,
    }
}

/// Applies settlements: a settled subject has the settled value, any other its strongest claim. What a settlement names and nobody claims any
/// more is not brought back.
#[must_use]
pub fn settle(layers: &Layers, settlements: &Settlements) -> Settled {
    let volumes: Vec<Volume> = settle_part(&layers.volumes, settlements);
    let known: BTreeSet<&str> = volumes.iter().map(|v| v.name.as_str()).collect();
    let all: Vec<VolumeMount> = settle_part(&layers.mounts, settlements);
    let (mounts, dropped) = all.into_iter().partition(|m| known.contains(m.name.as_str()));
    Settled { env: env::order(settle_part(&layers.env, settlements)), volumes, mounts, dropped }
}

fn settle_part<T: Part>(layers: &[Layer<T>], settlements: &Settlements) -> Vec<T> {
    let groups = grouped(layers);
    let mut seen = BTreeSet::new();
    let mut out = Vec::with_capacity(groups.len());
    // Layers come user first, in the user's order.
    for layer in layers {
        let subject = layer.item.subject();
        if !seen.insert(subject) {
            continue;
        }
        let settled = settlements.get(&key(T::KIND, subject)).and_then(|s| T::from_value(subject, &s.value));
        let strongest = groups.get(subject).and_then(|g| g.first()).map(|l| l.item.clone());
        out.extend(settled.or(strongest));
    }
    out
}
