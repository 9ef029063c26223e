//! `weir plan`: the operator's own reconcile path with no cluster.

mod diff;
pub mod policies;
pub mod remotes;
mod verification;
mod watch;

use std::{io::Write, rc::Rc};

use serde_json::Value;
use weir_core::policy::Policies;
use weir_harness::{
    pass::{self, Artifacts, Kinds, Manifests, Options, Pull, Report, Untaken, core_artifact},
    sources,
};
use weir_host::{
    oci::{self, Reference},
    wasm::{Limits, Wasm},
};

use self::verification::Verification;
use crate::{
    args::{self, Output},
    exit::Exit,
    registry::{Lookup, Registry},
};

/// Runs the command.
///
/// # Errors
/// Usage and unreadable input ([`Exit::Usage`]), a host that does not start ([`Exit::Internal`]).
pub fn run(args: &args::Plan) -> anyhow::Result<Exit> {
    let host = policies::host(&args.cache_dir)?;
    if args.watch {
        return watch::run(args, &host);
    }
    let planned = once(args, &host)?;
    crate::print(planned.text.as_bytes())?;
    let _ = std::io::stderr().lock().write_all(&planned.said);
    Ok(planned.exit)
}

/// What a run prints, and how it ends.
struct Planned {
    text: String,
    said: Vec<u8>,
    exit: Exit,
}

/// Plans once.
fn once(args: &args::Plan, host: &Wasm) -> anyhow::Result<Planned> {
    let reached = args.remotes.reach()?;
    let slots = reached.as_ref().map(|reached| reached.slots.clone()).unwrap_or_default();
    let loaded = policies::load_beside(host, &args.policies, &args.settings, Limits::default(), &slots)?;
    let (report, differing) = match diff::Against::of(args) {
        None => (plan(args, &loaded.policies)?, None),
        Some(against) => {
            let (report, changes) = diff::changes(args, &against, &loaded.policies)?;
            (report, Some(changes))
        }
    };
    let mut exit = loaded.problems.iter().map(|p| p.exit).fold(report.exit(), Exit::max);
    let text = match (&differing, args.output) {
        (Some(changes), output) => {
            exit = exit.max(if changes.is_empty() { Exit::Done } else { Exit::Held });
            diff::text(changes, output)?
        }
        (None, Output::Json) => report.json()?,
        (None, Output::Yaml) => yaml(&report)?,
    };
    let mut err = Vec::new();
    for problem in &loaded.problems {
        let _ = writeln!(err, "weir plan: {}", problem.message);
    }
    summary(&mut err, &report, args.quiet);
    Ok(Planned { text, said: err, exit })
}

/// Plans every DataPlane of the manifests.
///
/// # Errors
/// When an input cannot be read at all.
pub fn plan(args: &args::Plan, policies: &Policies) -> anyhow::Result<Report> {
    let observed = args.observed.as_ref().map(|dir| sources::read(std::slice::from_ref(dir))).transpose()?;
    with(args, &Manifests { desired: sources::read(&args.filenames)?, observed: observed.unwrap_or_default() }, &Kinds::new()?, policies)
}

/// Plans every DataPlane of the manifests.
fn with(args: &args::Plan, manifests: &Manifests, kinds: &Kinds, policies: &Policies) -> anyhow::Result<Report> {
    let artifacts = artifacts(args)?;
    Ok(pass::pass(manifests, &artifacts, &options(args), kinds, policies)?)
}

fn options(args: &args::Plan) -> Options {
    Options {
        now: args.now,
        namespace: args.namespace.clone(),
        operator_namespace: args.operator_namespace.clone(),
        cluster_name: args.cluster_name.clone(),
        cluster_labels: args.cluster_labels.iter().cloned().collect(),
        validate_images: args.validate_images,
        allow_cross_namespace_plugins: args.allow_cross_namespace_plugins,
        operator: None,
    }
}

/// What `--artifact` gives, and what `--pull` finds in registries, signed as `--verification-file` says.
fn artifacts(args: &args::Plan) -> anyhow::Result<Artifacts> {
    let registry = args.pull.then(|| Registry::new(&args.registry, Lookup::Nowhere, args.quiet)).transpose()?.map(Rc::new);
    let verification = Verification::new(args, registry.clone())?;
    let files = args.artifacts.iter().map(|(reference, path)| (reference.as_str(), path.as_path()));
    Ok(Artifacts::new(files, registry.map(pull), Some(Box::new(verification)))?)
}

/// Asks registries, as `--pull` says.
fn pull(registry: Rc<Registry>) -> Pull {
    Box::new(move |reference: &Reference| {
        let credentials = registry.credentials(reference).map_err(|failure| Untaken { message: failure.message, transient: false })?;
        let pulled = registry.wait(registry.puller().pull(reference, &credentials, &oci::Limits::default()));
        pulled.map(core_artifact).map_err(|error| Untaken { transient: error.transient(), message: error.to_string() })
    })
}

/// A YAML document per object, then one of kind PlanReport with the rest.
fn yaml(report: &Report) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in &report.objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
    }
    let mut rest = serde_json::to_value(report)?;
    if let Value::Object(map) = &mut rest {
        map.remove("objects");
        map.insert("apiVersion".into(), "weir.dev/v1alpha1".into());
        map.insert("kind".into(), "PlanReport".into());
    }
    text.push_str("---\n");
    text.push_str(&serde_saphyr::to_string(&rest)?);
    Ok(text)
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
