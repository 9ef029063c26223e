//! One pass over manifests: what `operator` does with a cluster, done with files. Everything that is decided is decided by the core.

mod artifacts;
mod cluster;
mod extensions;
mod gather;
mod installations;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use futures::executor::block_on;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use weir_api::manifest::{self, Loaded, Problem, Schemas, Source};
use weir_core::{
    dataplane,
    decisions::Sealing,
    plan::{Change, Plan},
    policy::{Finding, Policies, Severity},
};

pub use self::{
    artifacts::{Artifacts, Pull, Untaken, Verify, Whole, core_artifact},
    cluster::Cluster,
    report::{Of, Purpose, Report, Write},
};
use self::{gather::World, installations::Planned};
use crate::{
    exit::{Exit, Failure},
    record::OperatorFacts,
};

/// Images that a warning names.
const NAMED_IMAGES: usize = 5;

/// What a pass knows that is in no manifest. The defaults are those of `weir plan`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time of the pass.
    pub now: jiff::Timestamp,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// The operator's own namespace, where its CA is looked for.
    pub operator_namespace: String,
    /// Name of the cluster, as policies see it.
    pub cluster_name: String,
    /// Labels of the cluster, as policies see them.
    pub cluster_labels: BTreeMap<String, String>,
    /// Whether images that are known to be below Kong 3.0.0 are refused.
    pub validate_images: bool,
    /// Whether DataPlanes use installations of other namespaces without a ReferenceGrant.
    pub allow_cross_namespace_plugins: bool,
    /// What an operator knows about itself, where it was recorded.
    pub operator: Option<OperatorFacts>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // 2026-01-01T00:00:00Z: fixed, so that a pass is the same on every machine.
            now: jiff::Timestamp::constant(1_767_225_600, 0),
            namespace: "default".into(),
            operator_namespace: "weir-system".into(),
            cluster_name: String::new(),
            cluster_labels: BTreeMap::new(),
            validate_images: true,
            allow_cross_namespace_plugins: false,
            operator: None,
        }
    }
}

/// Schemas of our kinds, compiled once for many passes.
#[derive(Debug)]
pub struct Kinds {
    known: Schemas,
    none: Schemas,
}

impl Kinds {
    /// Compiles them.
    ///
    /// # Errors
    /// None in practice: they are our own.
    pub fn new() -> Result<Self, Failure> {
        let failed = |error| Failure { exit: Exit::Internal, message: format!("our own CRDs do not compile: {error}") };
        Ok(Self { known: Schemas::new(&weir_api::crds::all()).map_err(failed)?, none: Schemas::new(&[]).map_err(failed)? })
    }

    /// Schemas by kind.
    #[must_use]
    pub fn schemas(&self) -> &Schemas {
        &self.known
    }
}

/// The manifests of a pass.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// What the user wants.
    pub desired: Vec<Source>,
    /// What is there: live objects, their children and their status.
    pub observed: Vec<Source>,
}

/// A pass over one object, as it ended.
pub(crate) struct Done<'a> {
    kind: &'static str,
    /// As the pass saw it, with the UID and the generation that it took for the object's.
    meta: &'a ObjectMeta,
    changes: &'a [Change],
    status: Option<Value>,
    planned: &'a Planned,
}

/// Plans every object of the manifests.
///
/// # Errors
/// Manifests without any object ([`Exit::Usage`]).
pub fn pass(
    manifests: &Manifests,
    artifacts: &Artifacts,
    options: &Options,
    kinds: &Kinds,
    policies: &Policies,
) -> Result<Report, Failure> {
    run(manifests, artifacts, options, kinds, policies, &mut |_| {})
}

/// Plans every object of the manifests, and keeps what the cluster would have afterwards.
///
/// # Errors
/// As [`pass`].
pub fn pass_into(
    cluster: &mut Cluster,
    artifacts: &Artifacts,
    options: &Options,
    kinds: &Kinds,
    policies: &Policies,
) -> Result<Report, Failure> {
    let manifests = cluster.manifests();
    let report = run(&manifests, artifacts, options, kinds, policies, &mut |done| cluster.take(done))?;
    Ok(report)
}

fn run(
    manifests: &Manifests,
    artifacts: &Artifacts,
    options: &Options,
    kinds: &Kinds,
    policies: &Policies,
    each: &mut dyn FnMut(&Done<'_>),
) -> Result<Report, Failure> {
    let desired = manifest::load(manifests.desired.clone(), &kinds.known, &options.namespace);
    let observed = match manifests.observed.as_slice() {
        [] => Loaded::default(),
        // What is live is live, whatever our version of the schema says of it.
        [_, ..] => manifest::load(manifests.observed.clone(), &kinds.none, &options.namespace),
    };
    let mut report = Report::default();
    for problem in desired.problems.iter().chain(&observed.problems) {
        refuse(&mut report, problem);
    }
    if desired.objects.is_empty() && desired.problems.is_empty() {
        return Err(Failure::usage("the manifests contain no object: name files with -f, or pipe them to `-f -`"));
    }
    for object in desired.objects.others.iter().filter_map(|o| gather::near_miss(&o.object)) {
        report.ends(Exit::Held);
        report.held.push(format!("{}: {}", object.object, object.what.message));
        report.findings.push(object);
    }
    let images = || desired.objects.plugin_installations.iter().map(|installation| installation.object.spec.image.as_str());
    report.warnings.extend(artifacts.unused(images()).into_iter().map(|reference| unused(reference, images())));
    let mut world = World {
        options,
        schemas: &kinds.known,
        desired: &desired.objects,
        observed: &observed.objects,
        planned: BTreeSet::new(),
        installations: Planned::default(),
    };
    for installation in &desired.objects.plugin_installations {
        let (meta, plan) = world.installation(&installation.object, artifacts, policies);
        each(&done("KongPluginInstallation", &meta, &plan, &world.installations));
        report.add(&Of::installation(&meta), plan, &world.installations);
    }
    for data_plane in &desired.objects.data_planes {
        let transition = world.transition_problems(data_plane);
        if !transition.is_empty() {
            transition.iter().for_each(|problem| refuse(&mut report, problem));
            continue;
        }
        let snapshot = world.snapshot(&data_plane.object);
        let plan = block_on(dataplane::reconcile(&snapshot, policies, &Sealing::Open));
        let meta = &snapshot.data_plane.metadata;
        world.take_names(meta.namespace.as_deref().unwrap_or_default(), &plan);
        each(&done("DataPlane", meta, &plan, &world.installations));
        report.add(&Of::data_plane(meta), plan, &world.installations);
    }
    Ok(report)
}

fn done<'a, S: serde::Serialize>(kind: &'static str, meta: &'a ObjectMeta, plan: &'a Plan<S>, planned: &'a Planned) -> Done<'a> {
    let status = plan.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
    Done { kind, meta, changes: &plan.changes, status, planned }
}

/// An artifact that the plan is without, which is most often a slip of the pen.
fn unused<'a>(reference: &str, images: impl Iterator<Item = &'a str>) -> String {
    let images: BTreeSet<&str> = images.collect();
    let named: Vec<&str> = images.iter().copied().take(NAMED_IMAGES).collect();
    let more = match images.len().saturating_sub(NAMED_IMAGES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let they = match named.as_slice() {
        [] => "there is none".to_owned(),
        [_, ..] => format!("they name {}{more}", named.join(", ")),
    };
    format!("--artifact {reference}: no KongPluginInstallation of the manifests names it in spec.image; {they}")
}

/// A refused manifest is a finding: the others are still planned.
fn refuse(report: &mut Report, problem: &Problem) {
    report.ends(if problem.is_unreadable() { Exit::Usage } else { Exit::Held });
    let code = if problem.is_unreadable() { "UnreadableManifest" } else { "InvalidObject" };
    report.findings.push(Of {
        object: problem.object.clone().unwrap_or_else(|| base_name(&problem.file)),
        what: Finding {
            severity: Severity::Error,
            code: code.into(),
            path: problem.field.clone().unwrap_or_default(),
            // A duplicate's message names the other file too.
            message: format!("{}:{}: {}", base_name(&problem.file), problem.line, problem.message.replace(&folder(&problem.file), "")),
        },
    });
    report.held.push(problem.to_string());
}

/// Findings name the file, not the folder it happens to lie in: a plan is the same on every machine.
fn base_name(file: &str) -> String {
    Path::new(file).file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The folder of a file, with its slash.
fn folder(file: &str) -> String {
    Path::new(file).parent().map(|dir| format!("{}/", dir.display())).filter(|dir| dir != "/").unwrap_or_default()
}
