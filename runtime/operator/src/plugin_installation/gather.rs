//! What one pass sees. Reads caches, one Secret at most, and what the registry has told so far; writes nothing.

use std::time::Duration;

use weir_api::{keys, plugin_installation::KongPluginInstallation};
use weir_core::{
    dataplane::plugins::mounted_maps,
    decisions::Sealing,
    plan::ChildKind,
    plugin_installation::{
        Need, need, resync,
        snapshot::{Claimant, Fetch, PullSecret, Snapshot},
    },
    policy::Identity,
};
use weir_host::oci::Reference;

use super::{
    Anew,
    pull_secret::Looked,
    pulls::{Question, Step},
};
use crate::{
    cache::{Cached, Key},
    context::Context,
    dataplane,
};

/// What a pass sees, and when to look again where nobody will say.
pub(super) struct Seen {
    pub(super) snapshot: Snapshot,
    pub(super) after: Option<Duration>,
}

/// Makes the snapshot, and asks the registry for what is missing.
///
/// # Errors
/// What is not known yet, for a log line.
pub(super) async fn look(
    context: &Context,
    key: &Key,
    installation: &KongPluginInstallation,
    packaging: &Identity,
    sealing: &Sealing,
) -> Result<Seen, String> {
    let mut snapshot = snapshot(context, key, installation, sealing);
    let uid = installation.metadata.uid.as_deref().unwrap_or_default();
    let interval = resync(installation);
    let looks = &context.plugins.looks;
    let due = looks.due(key, uid, interval, unanswered(installation));
    let need_now = need(&snapshot, packaging, sealing, due.looking);
    let reference = Reference::parse(&installation.spec.image);
    let secret = match &reference {
        Ok(reference) => Some(context.plugins.pull_secrets.look(installation, reference).await),
        Err(_) => None,
    };
    let mut after = None;
    match (need_now, reference, secret) {
        (Need::Nothing, _, secret) => {
            // Said now, not when it is needed.
            if let Some(Ok(Looked::Unusable(problem))) = secret {
                snapshot.pull_secret = PullSecret::Unusable(problem);
            }
            context.plugins.pulls.forget(key);
            looks.ended(key);
        }
        (_, Ok(_), Some(Err(error))) => return Err(error),
        (_, Ok(_), Some(Ok(Looked::Unusable(problem)))) => {
            snapshot.pull_secret = PullSecret::Unusable(problem);
            context.plugins.pulls.forget(key);
        }
        (needed, Ok(reference), Some(Ok(Looked::Usable { credentials, version }))) => {
            let question = Question { reference, credentials, version };
            let asking = Asking { context, key, packaging, sealing };
            after = asking.ask(&needed, question, due.anew, &mut snapshot);
        }
        (_, Err(error), _) => {
            snapshot.fetch = Fetch::Failed { message: format!("spec.image: {error}"), transient: false, digest: None };
            context.plugins.pulls.forget(key);
        }
        // A reference has its Secret looked at.
        (_, Ok(_), None) => {}
    }
    let resync = interval.and_then(|interval| looks.remaining(key, interval));
    Ok(Seen { snapshot, after: after.into_iter().chain(resync).min() })
}

struct Asking<'a> {
    context: &'a Context,
    key: &'a Key,
    packaging: &'a Identity,
    sealing: &'a Sealing,
}

impl Asking<'_> {
    /// Asks for what is needed, fills `snapshot.fetch`, and tells when to ask again.
    fn ask(&self, needed: &Need, question: Question, anew: Anew, snapshot: &mut Snapshot) -> Option<Duration> {
        let pulls = &self.context.plugins.pulls;
        let reference = question.reference.clone();
        pulls.begin(self.key, question, anew);
        let step = match self.steps(needed, &reference, snapshot) {
            Ok(step) | Err(step) => step,
        };
        match &step.fetch {
            // A look that failed goes on: it is tried again.
            Fetch::NotAsked | Fetch::Pending | Fetch::Queued | Fetch::Failed { .. } => {}
            Fetch::Resolved(_) => {
                pulls.settle(self.key);
                self.context.plugins.looks.ended(self.key);
            }
            Fetch::Fetched(_) => self.context.plugins.looks.ended(self.key),
        }
        snapshot.fetch = step.fetch;
        step.after
    }

    /// The tag first, also where the digest is known: whoever may not ask for it must not get what was fetched for others.
    fn steps(&self, needed: &Need, reference: &Reference, snapshot: &mut Snapshot) -> Result<Step, Step> {
        let pulls = &self.context.plugins.pulls;
        let impossible = |error: weir_host::oci::ReferenceError| Step {
            fetch: Fetch::Failed { message: format!("spec.image: {error}"), transient: false, digest: None },
            after: None,
        };
        let digest = match needed {
            Need::Nothing => return Ok(Step { fetch: Fetch::NotAsked, after: None }),
            Need::Digest | Need::Content { digest: None } => pulls.digest(self.key, reference)?,
            Need::Content { digest: Some(digest) } => pulls.digest(self.key, &reference.with_digest(digest).map_err(impossible)?)?,
        };
        if *needed == Need::Digest {
            snapshot.fetch = Fetch::Resolved(digest.clone());
            if need(snapshot, self.packaging, self.sealing, true) == Need::Nothing {
                return Ok(Step { fetch: Fetch::Resolved(digest), after: None });
            }
        }
        Ok(pulls.content(self.key, &reference.with_digest(&digest).map_err(impossible)?))
    }
}

/// The value of `weir.dev/check-at`, until a pass has answered it.
fn unanswered(installation: &KongPluginInstallation) -> Option<&str> {
    let annotation = |key: &str| installation.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    annotation(keys::CHECK_AT).filter(|asked| annotation(keys::CHECKED_AT) != Some(*asked))
}

/// Everything but the artifact.
fn snapshot(context: &Context, key: &Key, installation: &KongPluginInstallation, sealing: &Sealing) -> Snapshot {
    let world = &context.world;
    let uid = installation.metadata.uid.as_deref().unwrap_or_default();
    let namespace = world.namespaces.get(&Key::new("", &key.namespace));
    let owned = world.contents.owned_by(uid).into_iter().chain(world.kong_contents.owned_by(uid));
    let mut foreign: Vec<String> = world
        .contents
        .beginning(&key.namespace, "")
        .iter()
        .filter(|map| !map.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid))
        .filter_map(|map| map.metadata.name.clone())
        .collect();
    foreign.extend(context.writer.foreign().names(ChildKind::ConfigMap, &key.namespace));
    Snapshot {
        now: context.clock.now(),
        operator: dataplane::operator(context),
        installation: installation.clone(),
        namespace_labels: namespace.and_then(|n| n.metadata.labels.clone()).unwrap_or_default(),
        pull_secret: PullSecret::Usable,
        verification: Reference::parse(&installation.spec.image).ok().and_then(|image| context.registries.current().wanted(&image)),
        fetch: Fetch::NotAsked,
        claimants: claimants(context, key, installation, sealing),
        config_maps: owned.map(|map| map.metadata.clone()).collect(),
        foreign,
    }
}

/// DataPlanes that name the installation, also those that may not: its owner is to hear of them, and a grant that is withdrawn takes nothing
/// away from pods.
fn claimants(context: &Context, key: &Key, installation: &KongPluginInstallation, sealing: &Sealing) -> Vec<Claimant> {
    let world = &context.world;
    let uid = installation.metadata.uid.as_deref().unwrap_or_default();
    let in_force = context.plugins.known.content(installation, sealing).map(|content| content.label());
    let owned = world.contents.owned_by(uid);
    let labels = owned.iter().filter_map(|map| map.metadata.labels.as_ref()?.get(keys::PLUGIN_CONTENT).cloned());
    let sets: Vec<String> = labels.chain(in_force).map(|label| format!("plugin-{label}-")).collect();
    let mounts = |uid: &str| {
        let deployments = world.deployments.owned_by(uid);
        let maps = deployments.iter().flat_map(|deployment| mounted_maps(deployment));
        maps.into_iter().any(|map| sets.iter().any(|set| map.starts_with(set.as_str())))
    };
    let claimant = |user: Key| {
        let data_plane = world.data_planes.get(&user)?;
        let meta = Cached::meta(&*data_plane);
        let uid = meta.uid.clone().filter(|_| meta.deletion_timestamp.is_none())?;
        Some(Claimant {
            permitted: super::permitted(context, &user.namespace, key),
            mounts: mounts(&uid),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            namespace: user.namespace,
            name: user.name,
            uid,
        })
    };
    context.plugins.users.of(key).into_iter().filter_map(claimant).collect()
}
