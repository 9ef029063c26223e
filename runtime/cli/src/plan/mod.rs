//! `weir plan`: the operator's own reconcile path with no cluster.

mod artifacts;
mod extensions;
pub mod gather;
pub mod installations;
pub mod policies;
pub mod report;
mod sources;
mod verification;

use std::{collections::BTreeSet, io::Write, path::Path};

use futures::executor::block_on;
use weir_api::manifest::{self, Loaded, Problem, Schemas};
use weir_core::{
    dataplane,
    decisions::Sealing,
    policy::{Finding, Policies, Severity},
};

use weir_host::wasm::Limits;

use self::{
    artifacts::Artifacts,
    installations::Planned,
    report::{Of, Report},
};
use crate::{
    args::{self, Output},
    exit::{Exit, Failure},
};

/// Images that a warning names.
const NAMED_IMAGES: usize = 5;

/// Runs the command.
///
/// # Errors
/// Usage and unreadable input ([`Exit::Usage`]), a host that does not start ([`Exit::Internal`]).
pub fn run(args: &args::Plan) -> anyhow::Result<Exit> {
    let host = policies::host(&args.cache_dir)?;
    let loaded = policies::load(&host, &args.policies, &args.settings, Limits::default())?;
    let report = plan(args, &loaded.policies)?;
    let exit = loaded.problems.iter().map(|p| p.exit).fold(report.exit(), Exit::max);
    let text = match args.output {
        Output::Json => report.json()?,
        Output::Yaml => report.yaml()?,
    };
    crate::print(text.as_bytes())?;
    let mut err = std::io::stderr().lock();
    for problem in &loaded.problems {
        let _ = writeln!(err, "weir plan: {}", problem.message);
    }
    summary(&mut err, &report, args.quiet);
    Ok(exit)
}

/// Plans every DataPlane of the manifests.
///
/// # Errors
/// When an input cannot be read at all.
pub fn plan(args: &args::Plan, policies: &Policies) -> anyhow::Result<Report> {
    let schemas = Schemas::new(&weir_api::crds::all()).map_err(|error| anyhow::anyhow!("our own CRDs do not compile: {error}"))?;
    let lenient = Schemas::new(&[]).map_err(|error| anyhow::anyhow!("no schema does not compile: {error}"))?;
    let desired = manifest::load(sources::read(&args.filenames)?, &schemas, &args.namespace);
    let observed = match &args.observed {
        // What is live is live, whatever our version of the schema says of it.
        Some(dir) => manifest::load(sources::read(std::slice::from_ref(dir))?, &lenient, &args.namespace),
        None => Loaded::default(),
    };
    let mut report = Report::default();
    for problem in desired.problems.iter().chain(&observed.problems) {
        refuse(&mut report, problem);
    }
    if desired.objects.is_empty() && desired.problems.is_empty() {
        return Err(Failure::usage("the manifests contain no object: name files with -f, or pipe them to `-f -`").into());
    }
    for object in desired.objects.others.iter().filter_map(|o| gather::near_miss(&o.object)) {
        report.ends(Exit::Held);
        report.held.push(format!("{}: {}", object.object, object.what.message));
        report.findings.push(object);
    }
    let artifacts = Artifacts::new(args)?;
    let images = || desired.objects.plugin_installations.iter().map(|installation| installation.object.spec.image.as_str());
    report.warnings.extend(artifacts.unused(images()).into_iter().map(|reference| unused(reference, images())));
    let mut world = gather::World {
        args,
        schemas: &schemas,
        desired: &desired.objects,
        observed: &observed.objects,
        planned: BTreeSet::new(),
        installations: Planned::default(),
    };
    for installation in &desired.objects.plugin_installations {
        let plan = world.installation(&installation.object, &artifacts, policies);
        let meta = &installation.object.metadata;
        report.add(&Of::installation(meta), plan, &world.installations);
    }
    for data_plane in &desired.objects.data_planes {
        let transition = world.transition_problems(data_plane);
        if !transition.is_empty() {
            transition.iter().for_each(|problem| refuse(&mut report, problem));
            continue;
        }
        let snapshot = world.snapshot(&data_plane.object);
        let plan = block_on(dataplane::reconcile(&snapshot, policies, &Sealing::Open));
        let meta = &data_plane.object.metadata;
        world.take_names(meta.namespace.as_deref().unwrap_or_default(), &plan);
        report.add(&Of::data_plane(meta), plan, &world.installations);
    }
    Ok(report)
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

/// What a person wants to know at once: on standard error, so that the plan itself can be piped.
fn summary(err: &mut impl Write, report: &Report, quiet: bool) {
    for line in &report.held {
        let _ = writeln!(err, "weir plan: {line}");
    }
    if !quiet {
        for line in &report.warnings {
            let _ = writeln!(err, "weir plan: warning: {line}");
        }
        if report.statuses.is_empty() {
            let _ = writeln!(err, "weir plan: the manifests contain no DataPlane and no KongPluginInstallation that can be planned");
        }
        let of = |kind: &str| report.statuses.iter().filter(|s| s.get("kind").and_then(|k| k.as_str()) == Some(kind)).count();
        let _ = writeln!(
            err,
            "weir plan: {} DataPlane(s), {} installation(s): {} object(s) to write, {} to delete, {} held or refused",
            of("DataPlane"),
            of("KongPluginInstallation"),
            report.objects.len(),
            report.deletions.len(),
            report.held.len()
        );
    }
}
