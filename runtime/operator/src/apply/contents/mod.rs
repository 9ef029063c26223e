//! Plugin content: the installation's own set, and one copy per namespace and content, which all DataPlanes there mount and own together.

mod owners;
mod places;
mod verify;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use tokio::sync::Semaphore;
use weir_api::keys;
use weir_core::{
    dataplane::plugins,
    plan::{ChildKind, ContentRequest},
    plugin_installation::content::Content,
};

pub(crate) use self::places::stands;
use self::{
    places::{mounted, places},
    verify::{holds, is_fixed, same},
};
use super::{Failed, Failure, Holder, Writer};
use crate::{
    cache::Key,
    metrics::{ObjectKind, Verb},
    world::content_meta,
};

/// Sets that are copied or verified at once: each is some MiB in memory.
const AT_ONCE: usize = 2;
/// Verified ConfigMaps that are remembered; more are verified again.
const MOST_VERIFIED: usize = 20_000;

/// What is known of content that stands.
pub(super) struct Contents {
    /// UIDs of ConfigMaps that hold what their name says, and cannot change.
    verified: Mutex<HashSet<String>>,
    turns: Semaphore,
}

impl Default for Contents {
    fn default() -> Self {
        Self { verified: Mutex::default(), turns: Semaphore::new(AT_ONCE) }
    }
}

impl Contents {
    fn note(&self, meta: &ObjectMeta) {
        let Some(uid) = meta.uid.clone() else { return };
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= MOST_VERIFIED {
            verified.clear();
        }
        verified.insert(uid);
    }

    fn is_verified(&self, meta: &ObjectMeta) -> bool {
        meta.uid.as_ref().is_some_and(|uid| self.verified.lock().unwrap_or_else(PoisonError::into_inner).contains(uid))
    }
}

impl Writer {
    /// Stores a ConfigMap of an installation's own set. One that is there already is fine if it is the same.
    pub(super) async fn store(&self, owner: &Key, uid: &str, map: &ConfigMap, body: &serde_json::Value) -> Result<(), Failure> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let failure = |error: &kube::Error| Failure::new(ChildKind::ConfigMap, &name, Failed::of(error), error);
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &owner.namespace);
        let error = match api.create(&posted(), map).await {
            Ok(stored) => {
                self.created(stored);
                return Ok(());
            }
            Err(error) => error,
        };
        if Failed::of(&error) != Failed::Exists {
            return Err(failure(&error));
        }
        let live = api.get_opt(&name).await.map_err(|error| failure(&error))?;
        let ours = |live: &ConfigMap| live.metadata.owner_references.iter().flatten().any(|o| o.uid == uid);
        match live {
            // Only its labels may be others: without ours it is not even seen.
            Some(live) if ours(&live) && is_fixed(&live) && same(&live, map) => {
                let answer = self.patch_child(ChildKind::ConfigMap, &owner.namespace, &name, body, true).await.map_err(|e| failure(&e))?;
                self.metrics.wrote(ObjectKind::ConfigMap, Verb::Apply);
                self.cache(ChildKind::ConfigMap, answer).map_err(|error| Failure::unreadable(ChildKind::ConfigMap, &name, &error))
            }
            Some(live) if ours(&live) && live.metadata.deletion_timestamp.is_none() => {
                let problem =
                    format!("ConfigMap {} is not what the operator stored: delete it, and it is made again", Key::of(&live.metadata));
                Err(Failure::content(format!("ConfigMap {name}"), problem))
            }
            Some(_) => match self.learn(ChildKind::ConfigMap, owner, uid, &name).await {
                Holder::Stranger => Err(Failure::taken(ChildKind::ConfigMap, &name)),
                Holder::Us | Holder::Nobody => Err(failure(&error)),
            },
            None => Err(failure(&error)),
        }
    }

    /// Sees to it that a set is there, holds what it should, and has the owner. `known` are the contents that the pass may ask for.
    pub(super) async fn provide(&self, request: &ContentRequest, known: &[Arc<Content>]) -> Result<(), Failure> {
        let names = mounted(&request.hash, request.maps);
        let is_done = |name: &String| {
            let map = self.world.contents.get(&Key::new(&request.namespace, name));
            map.is_some_and(|map| map.metadata.deletion_timestamp.is_none() && self.contents.is_verified(&map.metadata))
        };
        if !names.iter().all(is_done) {
            let content = known.iter().find(|content| content.hash == request.hash && content.maps == request.maps);
            let unknown = || Failure::content(what(request), format!("content {} of {} is not known", request.hash, what(request)));
            self.copy(request, content.ok_or_else(unknown)?, &names).await?;
        }
        for name in &names {
            self.join(request, name).await?;
        }
        Ok(())
    }

    /// Makes what is missing of a set, and verifies what is there.
    async fn copy(&self, request: &ContentRequest, content: &Content, names: &[String]) -> Result<(), Failure> {
        // Never closed: without a turn it would only need more memory.
        let _turn = self.contents.turns.acquire().await;
        let there = self.read(request, &request.namespace, names).await?;
        if let Some(leaving) = there.iter().flatten().find(|map| map.metadata.deletion_timestamp.is_some()) {
            return Err(Failure::waits(what(request), format!("ConfigMap {} is still being deleted", Key::of(&leaving.metadata))));
        }
        let whole: Vec<&ConfigMap> = there.iter().flatten().collect();
        if whole.len() == names.len() {
            if let Some(loose) = whole.iter().find(|map| !is_fixed(map)) {
                return Err(not_ours(request, loose));
            }
            if !holds(content, &whole) {
                return Err(whole.first().map_or_else(|| nowhere(request), |map| not_ours(request, map)));
            }
            whole.iter().for_each(|map| self.contents.note(&map.metadata));
            return Ok(());
        }
        let source = self.source(request, content).await?;
        for (index, ((there, name), from)) in there.iter().zip(names).zip(&source).enumerate() {
            match there {
                Some(map) if is_fixed(map) && same(map, from) => self.contents.note(&map.metadata),
                Some(map) => return Err(not_ours(request, map)),
                None => self.create(request, name, plugins::provided(request, index, Some(from))).await?,
            }
        }
        Ok(())
    }

    /// A set to copy from.
    async fn source(&self, request: &ContentRequest, content: &Content) -> Result<Vec<ConfigMap>, Failure> {
        let installation = Key::new(&request.installation.0, &request.installation.1);
        for place in places(&self.world, &installation, content) {
            let set: Vec<ConfigMap> = self.read(request, &place.namespace, &place.names).await?.into_iter().flatten().collect();
            if holds(content, &set.iter().collect::<Vec<_>>()) {
                return Ok(set);
            }
            let names = place.names.join(", ");
            tracing::warn!(namespace = place.namespace, config_maps = names, "a set of plugin content does not hold what its name says");
            if place.is_own {
                self.drop_spoilt(&installation, &set).await;
            }
        }
        Err(nowhere(request))
    }

    /// Deletes what somebody put into the place of an installation's own set: nobody mounts it, and the installation's pass makes it again.
    async fn drop_spoilt(&self, installation: &Key, set: &[ConfigMap]) {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &installation.namespace);
        for meta in set.iter().map(|map| &map.metadata) {
            let mut owners = meta.owner_references.iter().flatten();
            let ours = owners.any(|o| o.kind == "KongPluginInstallation" && o.name == installation.name);
            let (Some(name), true) = (&meta.name, ours) else { continue };
            let preconditions = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            match api.delete(name, &params).await {
                Ok(_) => self.metrics.wrote(ObjectKind::ConfigMap, Verb::Delete),
                Err(error) => tracing::warn!(name, %error, "a spoilt ConfigMap of plugin content cannot be deleted"),
            }
        }
    }

    async fn create(&self, request: &ContentRequest, name: &str, map: ConfigMap) -> Result<(), Failure> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &request.namespace);
        match api.create(&posted(), &map).await {
            Ok(stored) => {
                self.contents.note(&stored.metadata);
                self.created(stored);
                Ok(())
            }
            // Another DataPlane's pass was faster.
            Err(error) if Failed::of(&error) == Failed::Exists => {
                let live = api.get_opt(name).await.map_err(|error| failed(request, name, &error))?;
                match live {
                    Some(live) if is_fixed(&live) && same(&live, &map) => {
                        self.contents.note(&live.metadata);
                        self.world.contents.answered(content_meta(live.metadata));
                        Ok(())
                    }
                    Some(live) => Err(not_ours(request, &live)),
                    None => Err(failed(request, name, &error)),
                }
            }
            Err(error) => Err(failed(request, name, &error)),
        }
    }

    fn created(&self, stored: ConfigMap) {
        self.metrics.wrote(ObjectKind::ConfigMap, Verb::Create);
        self.world.contents.answered(content_meta(stored.metadata));
    }

    async fn read(&self, request: &ContentRequest, namespace: &str, names: &[String]) -> Result<Vec<Option<ConfigMap>>, Failure> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        let mut set = Vec::with_capacity(names.len());
        for name in names {
            set.push(api.get_opt(name).await.map_err(|error| failed(request, name, &error))?);
        }
        Ok(set)
    }
}

fn posted() -> PostParams {
    PostParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PostParams::default() }
}

/// The installation: as the event of the change names it.
fn what(request: &ContentRequest) -> String {
    format!("{}/{}", request.installation.0, request.installation.1)
}

fn failed(request: &ContentRequest, name: &str, error: &kube::Error) -> Failure {
    Failure { what: what(request), ..Failure::new(ChildKind::ConfigMap, name, Failed::of(error), error) }
}

fn not_ours(request: &ContentRequest, map: &ConfigMap) -> Failure {
    let key = Key::of(&map.metadata);
    let problem = format!("ConfigMap {key} does not hold what its name says, or can be changed: delete it, and it is made again");
    Failure::content(what(request), format!("the content of KongPluginInstallation {}: {problem}", what(request)))
}

fn nowhere(request: &ContentRequest) -> Failure {
    let problem = format!(
        "the content {} of KongPluginInstallation {} stands nowhere to be copied from: set annotation {} on the installation, or name its \
         former image again",
        request.hash,
        what(request),
        keys::CHECK_AT
    );
    Failure::content(what(request), problem)
}
