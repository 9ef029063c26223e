//! The way of a candidate, step by step. What comes out is for the core to decide about.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use weir_api::reconcile_policy::Impact;
use weir_core::{
    policy::{
        ConflictResolution, Finding, KonnectEnv, ObjectHook, PluginPackaging, SlotName,
        selection::{Entry, ObjectKind},
        trial::{Compared, compare},
    },
    reconcile_policy::snapshot::{Failure, Found, Step, Work},
};
use weir_host::{oci::Reference, wasm::LoadError};

use super::{
    demand::{Demand, Source},
    fetch::{Access, Fetched, Sources, failed, wanted_signatures},
    signatures,
};
use crate::{
    cache::Key,
    metrics::Metrics,
    policies::{Body, Book, Place, Recipe, Revision, Revisions, Sampled, Served},
    remote::Remote,
    world::World,
};

/// Questions of a dry evaluation, and the time for all of them.
const MOST_QUESTIONS: usize = 100;
const MOST_TIME: Duration = Duration::from_secs(5);

/// What the steps need.
pub struct Workshop {
    /// Components.
    pub sources: Sources,
    /// Told of checks of signatures.
    pub metrics: Arc<Metrics>,
    /// Loaded revisions.
    pub revisions: Arc<Revisions>,
    /// Who answers now.
    pub book: Arc<Book>,
    /// Objects that are there.
    pub world: Arc<World>,
    /// Remote plugins.
    pub remote: Arc<Remote>,
}

impl Workshop {
    /// Does everything that a candidate needs. `at` is told of each step that begins.
    pub async fn run(&self, demand: &Demand, before: &Work, at: &(impl Fn(Step, &Found) + Sync)) -> Work {
        let mut found = Found { verification: demand.verification.clone(), ..Found::default() };
        match self.steps(demand, before, &mut found, at).await {
            Ok(work) => work,
            Err(failure) => Work::Failed { failure, found },
        }
    }

    async fn steps(&self, demand: &Demand, before: &Work, found: &mut Found, at: &(impl Fn(Step, &Found) + Sync)) -> Result<Work, Failure> {
        let (body, layer) = match &demand.source {
            Source::Builtin => (Body::Builtin, self.revisions.builtin_digest(demand.slot)),
            Source::Remote { plugin, digest } => {
                found.image = Some(demand.image.clone());
                let facts = self.remote.standing(plugin).and_then(|standing| standing.ready.ok());
                found.version = facts.map(|facts| facts.version).filter(|version| !version.is_empty());
                (Body::Remote { registry: Arc::clone(&self.remote.registry), plugin: plugin.clone(), check: true }, digest.clone())
            }
            Source::Oci(oci) => {
                found.image = Some(demand.image.clone());
                let access = self.sources.access(&demand.policy, oci).await?;
                let (manifest, reference) = match self.sources.resolve(&access, oci).await {
                    // Going back must not wait for a registry.
                    Err(failure) if failure.transient => former(demand, &access).ok_or(failure)?,
                    resolved => resolved?,
                };
                found.manifest_digest = Some(manifest.clone());
                if oci.semver.is_some() {
                    // Which of the tags it is.
                    found.image = reference.to_string().split('@').next().map(String::from);
                }
                if let Some(known) = known(demand, before, &manifest) {
                    return Ok(known);
                }
                let fetched = self.sources.component(&access, &reference, &manifest).await?;
                found.layer_digest = Some(fetched.layer.clone());
                found.version.clone_from(&fetched.version);
                at(Step::Verified, found);
                // What is looked for is what is wanted now, which may be more than when the work was asked for.
                found.verification = wanted_signatures(&access.current, Some(oci));
                found.signer = signatures::check(&self.sources, &self.metrics, demand, oci, &access, &fetched).await?;
                let Fetched { bytes, layer, .. } = fetched;
                (Body::Component(bytes), layer)
            }
        };
        found.layer_digest = Some(layer.clone());
        at(Step::Compatible, found);
        let revision = self.load(demand, body, &layer).await?;
        at(Step::Answers, found);
        let impact = self.dry_run(demand, &revision).await?;
        Ok(Work::Ready { found: found.clone(), findings: revision.findings.clone(), impact })
    }

    /// Loads what a status says.
    pub async fn load_recorded(&self, recipe: Recipe) -> Result<(), Failure> {
        let image = recipe.source.clone();
        let revisions = Arc::clone(&self.revisions);
        match tokio::task::spawn_blocking(move || revisions.load(recipe)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(refused(&image, error)),
            Err(_) => Err(broken(&image)),
        }
    }

    /// Compiling takes a processor for a while, and asking a component about itself may take its time limit.
    async fn load(&self, demand: &Demand, body: Body, layer: &str) -> Result<Arc<Revision>, Failure> {
        let recipe = Recipe {
            id: demand.revision(layer),
            body,
            source: demand.image.clone(),
            settings: demand.settings.clone(),
            limits: demand.limits,
        };
        let id = recipe.id.clone();
        self.load_recorded(recipe).await?;
        self.revisions.get(&id).ok_or_else(|| broken(&demand.image))
    }

    /// Asks the candidate what was asked lately of whom it would replace.
    async fn dry_run(&self, demand: &Demand, revision: &Revision) -> Result<Option<Impact>, Failure> {
        let Ok(entry) = Entry::new(&demand.object, true) else { return Ok(None) };
        match demand.slot {
            SlotName::KonnectEnv => self.dry::<KonnectEnv>(&entry, revision).await,
            SlotName::ConflictResolution => self.dry::<ConflictResolution>(&entry, revision).await,
            SlotName::PluginPackaging => self.dry::<PluginPackaging>(&entry, revision).await,
            SlotName::ObjectHook => self.dry::<ObjectHook>(&entry, revision).await,
        }
    }

    async fn dry<S: Served + Sampled>(&self, entry: &Entry, revision: &Revision) -> Result<Option<Impact>, Failure> {
        let Some(candidate) = S::pick(&revision.bare) else { return Ok(None) };
        let end = Instant::now() + MOST_TIME;
        let mut impact = Impact::default();
        for input in <S as Sampled>::of(&self.revisions.samples).spread() {
            let context = S::context(&input);
            let (kind, key) = (kind(&context.object.kind), Key::new(&context.object.namespace, &context.object.name));
            let place = Place { kind, key, labels: context.object.labels.clone(), namespace_labels: context.namespace_labels.clone() };
            if !self.is_there(&place) || !self.book.would_answer(entry, &place) {
                continue;
            }
            impact.matching = impact.matching.saturating_add(1);
            if usize::try_from(impact.evaluated).unwrap_or_default() >= MOST_QUESTIONS || Instant::now() >= end {
                continue;
            }
            // A hook is compared with its own revision in force, and where there is none with what leaves objects as they are.
            let (now, builtin) = (self.book.policies(&place), self.book.base.builtin());
            let name = format!("{}/{}", entry.key.0, entry.key.1);
            let Some(now) = <S as Served>::of(&now, Some(&name)).or_else(|| <S as Served>::of(&builtin, None)) else { continue };
            impact.evaluated = impact.evaluated.saturating_add(1);
            match compare::<S>(candidate.as_ref(), now.as_ref(), &input).await {
                Compared::Same => {}
                Compared::Changed => impact.changed = impact.changed.saturating_add(1),
                Compared::Refused => impact.refused = impact.refused.saturating_add(1),
                Compared::Failed { error, answered_now: true } => {
                    let message =
                        format!("{} {}: it was asked about this object and gave no answer: {error}", context.object.kind, place.key);
                    return Err(Failure { step: Step::Answers, reason: error.reason().into(), message, transient: false });
                }
                Compared::Failed { error: _, answered_now: false } => impact.failed = impact.failed.saturating_add(1),
            }
        }
        // What an installation gives changes pods as well, through the DataPlanes that mount it.
        impact.rolls = impact.changed;
        Ok(Some(impact))
    }

    fn is_there(&self, place: &Place) -> bool {
        match place.kind {
            ObjectKind::DataPlane => self.world.data_planes.get(&place.key).is_some(),
            ObjectKind::PluginInstallation => self.world.installations.get(&place.key).is_some(),
        }
    }
}

fn kind(kind: &str) -> ObjectKind {
    if kind == "DataPlane" { ObjectKind::DataPlane } else { ObjectKind::PluginInstallation }
}

/// Where the same reference led to when a former revision was found under it.
fn former(demand: &Demand, access: &Access) -> Option<(String, Reference)> {
    let status = demand.object.status.as_ref()?;
    let former = status.history.iter().flatten().find(|revision| revision.image.as_deref() == Some(demand.image.as_str()))?;
    let manifest = former.manifest_digest.clone()?;
    let reference = access.reference.with_digest(&manifest).ok()?;
    Some((manifest, reference))
}

/// What a manifest was found to be already. Whether a candidate still answers is no matter of its digest alone, so one that failed there
/// is asked again.
fn known(demand: &Demand, before: &Work, manifest: &str) -> Option<Work> {
    let is_it = |found: &Found| found.manifest_digest.as_deref() == Some(manifest);
    match before {
        Work::Ready { found, .. } if is_it(found) => return Some(before.clone()),
        Work::Failed { failure, found } if is_it(found) && [Step::Compatible, Step::SettingsValid].contains(&failure.step) => {
            return Some(before.clone());
        }
        Work::None | Work::Busy { .. } | Work::Failed { .. } | Work::Ready { .. } => {}
    }
    let current = demand.current.as_ref().filter(|current| current.manifest_digest.as_deref() == Some(manifest))?;
    let found = Found {
        image: current.image.clone(),
        manifest_digest: current.manifest_digest.clone(),
        layer_digest: Some(current.layer_digest.clone()),
        signer: current.signer.clone(),
        verification: current.verification.clone(),
        version: current.version.clone(),
    };
    Some(Work::Ready { found, findings: Vec::new(), impact: None })
}

fn refused(image: &str, error: LoadError) -> Failure {
    match error {
        LoadError::Policy(error) => {
            // Too busy to be compiled says nothing about it.
            let transient = error.reason() == "Unavailable";
            Failure { step: Step::Compatible, reason: error.reason().into(), message: format!("{image}: {error}"), transient }
        }
        LoadError::Settings(findings) => {
            let line = |f: &Finding| if f.path.is_empty() { f.message.clone() } else { format!("spec.settings.{}: {}", f.path, f.message) };
            let message = format!("{image} refuses its settings: {}", findings.iter().map(line).collect::<Vec<_>>().join("; "));
            Failure { step: Step::SettingsValid, reason: "Invalid".into(), message, transient: false }
        }
    }
}

/// Nothing came of it for a reason of ours.
pub(super) fn broken(image: &str) -> Failure {
    failed("Internal", format!("{image}: looking at it failed inside of the operator; its log says more"), true)
}
