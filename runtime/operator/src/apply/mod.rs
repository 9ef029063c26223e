//! The only writer. Carries out what a plan wants, in its order, and puts the server's answers into the caches.

mod children;
mod contents;
mod errors;
mod object;
mod plugin;
mod reclaim;
mod takeover;

use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use serde_json::Value;
use tracing::Instrument;
use weir_core::{
    live,
    plan::{CertificateRequest, Change, ChildKind, Object, Target},
    plugin_installation::content::Content,
};

use self::contents::Contents;
pub(crate) use self::errors::refused;
pub use self::errors::{Failed, Failure};
pub use self::object::Patched;
pub(crate) use self::{
    children::{certificate_resource, tls_secret},
    contents::stands,
};
use crate::{
    authority::Authority,
    cache::Key,
    memory::{Foreign, Remembered},
    metrics::{Metrics, ObjectKind, Verb},
    world::World,
};

/// The writer.
pub struct Writer {
    client: Client,
    world: Arc<World>,
    metrics: Arc<Metrics>,
    authority: Arc<Authority>,
    /// Names that turned out to be held by objects we do not watch.
    foreign: Mutex<Foreign>,
    contents: Contents,
}

impl Writer {
    /// A writer through this client.
    #[must_use]
    pub fn new(client: Client, world: Arc<World>, metrics: Arc<Metrics>, authority: Arc<Authority>) -> Self {
        Self { client, world, metrics, authority, foreign: Mutex::default(), contents: Contents::default() }
    }

    /// Names that others hold, as far as writes have shown.
    pub fn foreign(&self) -> std::sync::MutexGuard<'_, Foreign> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out changes of children. One that fails holds back only what needs it: the Deployment its certificate and the content of its
    /// plugins, deletions everything. `known` are the contents that the changes may ask for.
    pub async fn children(
        &self,
        owner: &Key,
        uid: &str,
        known: &[Arc<Content>],
        changes: &[Change],
        remembered: &mut Remembered,
    ) -> Vec<Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        for change in changes {
            let failed = match change {
                Change::Apply { object, .. } if needs(object, &failures) => continue,
                Change::Apply { object, first } => {
                    let span = write("apply", object.kind(), object.meta().name.as_deref());
                    self.apply(owner, uid, object, *first, remembered).instrument(span).await
                }
                Change::MintCertificate(request) => {
                    self.mint(uid, request).instrument(write("mint", ChildKind::Secret, request.metadata.name.as_deref())).await
                }
                Change::ProvideContent(request) => {
                    let span = write("provide", ChildKind::ConfigMap, Some(&request.installation.1));
                    self.provide(request, known).instrument(span).await
                }
                Change::TakeOver(target) => self.take_over(target).instrument(write("take over", target.kind, Some(&target.name))).await,
                Change::Reclaim(target) => self.reclaim(target).instrument(write("reclaim", target.kind, Some(&target.name))).await,
                Change::Delete(_) | Change::ReleaseContent { .. } if !failures.is_empty() => continue,
                Change::ReleaseContent { target, owner } => {
                    self.leave(target, owner, remembered).instrument(write("release", target.kind, Some(&target.name))).await
                }
                Change::Delete(target) => {
                    self.delete(target, remembered).instrument(write("delete", target.kind, Some(&target.name))).await
                }
                // Of the object itself; its own pass writes them.
                Change::RemoveAnnotation { .. } | Change::SetAnnotation { .. } | Change::SetFinalizer { .. } => continue,
            };
            if let Err(failure) = failed {
                log(owner, &failure);
                failures.push(failure);
            }
        }
        failures
    }

    async fn apply(&self, owner: &Key, uid: &str, object: &Object, first: bool, remembered: &mut Remembered) -> Result<(), Failure> {
        let kind = object.kind();
        let name = object.meta().name.clone().unwrap_or_default();
        let body = object.to_json();
        if let (Object::ConfigMap(map), true) = (object, first) {
            return self.store(owner, uid, map, &body).await;
        }
        if first && merges(kind) && self.learn(kind, owner, uid, &name).await == Holder::Stranger {
            return Err(Failure::taken(kind, &name));
        }
        let repair = !first && self.applied(kind, &Key::new(&owner.namespace, &name)) == applied(object);
        let mut answer = self.patch_child(kind, &owner.namespace, &name, &body, !first).await;
        if first && answer.as_ref().is_err_and(|error| Failed::of(error).may_be_foreign()) {
            // Ours, but somebody changed a label by which it is found.
            if self.learn(kind, owner, uid, &name).await == Holder::Us {
                answer = self.patch_child(kind, &owner.namespace, &name, &body, true).await;
            }
        }
        let answer = answer.map_err(|error| Failure::new(kind, &name, Failed::of(&error), &error))?;
        self.metrics.wrote(kind.into(), Verb::Apply);
        remembered.answered(kind, &name, live::answer_digest(&body, &answer), repair);
        // More than we sent is the server's defaults; another value of ours is admission's doing. It stays: we would fight for ever.
        remembered.altered(kind, &name, !live::covers(&answer, &body));
        self.cache(kind, answer).map_err(|error| Failure::unreadable(kind, &name, &error))
    }

    async fn mint(&self, uid: &str, request: &CertificateRequest) -> Result<(), Failure> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let secret = self.authority.secret(request).map_err(|message| Failure::certificate(&name, message))?;
        match self.create_secret(&secret).await {
            Ok(()) => Ok(()),
            // Made by a pass whose answer was lost; the cache will see it.
            Err(error) if Failed::of(&error) == Failed::Exists && self.owns_secret(&secret, uid).await => Ok(()),
            Err(error) => Err(Failure::new(ChildKind::Secret, &name, Failed::of(&error), &error)),
        }
    }

    async fn delete(&self, target: &Target, remembered: &mut Remembered) -> Result<(), Failure> {
        let failure = |error: &kube::Error| Failure::new(target.kind, &target.name, Failed::of(error), error);
        self.release(target).await.map_err(|error| failure(&error))?;
        match self.delete_child(target).await {
            Ok(()) => {}
            Err(error) if Failed::of(&error) == Failed::Gone => {}
            Err(error) => return Err(failure(&error)),
        }
        remembered.forget(target.kind, &target.name);
        self.metrics.wrote(target.kind.into(), Verb::Delete);
        Ok(())
    }
}

fn log(owner: &Key, failure: &Failure) {
    let Failure { what, failed, message, kind: _ } = failure;
    if failure.is_leaving() {
        tracing::debug!(object = %owner, what, message, "a namespace is going away");
    } else {
        tracing::warn!(object = %owner, what, reason = ?failed.reason(), message, "a write failed");
    }
}

fn write(verb: &'static str, kind: ChildKind, name: Option<&str>) -> tracing::Span {
    tracing::info_span!("write", verb, kind = kind.api().1, name)
}

/// Whose object a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Nobody's, as far as we know.
    Nobody,
    /// This DataPlane's.
    Us,
    /// Somebody else's.
    Stranger,
}

/// Kinds whose objects could be merged into without a conflict, if a stranger's says the same as ours; they are few, so a look costs little.
/// Deployments refuse another selector, and names of Services and Secrets are watched.
fn merges(kind: ChildKind) -> bool {
    match kind {
        ChildKind::HorizontalPodAutoscaler | ChildKind::PodDisruptionBudget | ChildKind::Certificate => true,
        ChildKind::Service | ChildKind::Secret | ChildKind::Deployment | ChildKind::ConfigMap => false,
    }
}

/// A Deployment whose certificate or plugins could not be stored would wait for them for ever; the next pass makes both.
fn needs(object: &Object, failures: &[Failure]) -> bool {
    match object {
        Object::Deployment(_) => failures.iter().any(|f| matches!(f.kind, ChildKind::Secret | ChildKind::ConfigMap)),
        Object::Service(_)
        | Object::HorizontalPodAutoscaler(_)
        | Object::PodDisruptionBudget(_)
        | Object::Certificate(_)
        | Object::ConfigMap(_) => false,
    }
}

fn applied(object: &Object) -> Option<String> {
    object.meta().annotations.as_ref()?.get(weir_api::keys::APPLIED).cloned()
}

impl From<ChildKind> for ObjectKind {
    fn from(kind: ChildKind) -> Self {
        match kind {
            ChildKind::Service => Self::Service,
            ChildKind::Secret => Self::Secret,
            ChildKind::Deployment => Self::Deployment,
            ChildKind::HorizontalPodAutoscaler => Self::HorizontalPodAutoscaler,
            ChildKind::PodDisruptionBudget => Self::PodDisruptionBudget,
            ChildKind::Certificate => Self::Certificate,
            ChildKind::ConfigMap => Self::ConfigMap,
        }
    }
}

/// The text of an object's field, where it has one.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}
