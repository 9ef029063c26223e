//! `weir plan --diff`: what would change of what is there.

use std::path::PathBuf;

use serde_json::{Value, json};
use weir_api::manifest::{self, Source};
use weir_core::policy::Policies;
use weir_harness::{
    changes::{self, Change},
    pass::{Kinds, Manifests, Report},
    sources,
};

use crate::{
    args::{self, Output},
    cluster::{self, Flags},
    live,
};

/// What is compared with.
pub(super) enum Against {
    /// The live cluster.
    Cluster,
    /// Live objects in files.
    Files(PathBuf),
}

impl Against {
    /// What the flags say; nothing without `--diff`.
    pub(super) fn of(args: &args::Plan) -> Option<Self> {
        let path = args.diff.as_ref()?;
        Some(if path.as_os_str().is_empty() { Self::Cluster } else { Self::Files(path.clone()) })
    }

    fn read(&self, args: &args::Plan, desired: &[Source], kinds: &Kinds) -> anyhow::Result<Vec<Source>> {
        match self {
            Self::Files(path) => Ok(sources::read(std::slice::from_ref(path))?),
            Self::Cluster => {
                let flags = Flags { kubeconfig: args.kubeconfig.clone(), timeout: std::time::Duration::from_secs(120) };
                let namespaces = namespaces(args, desired, kinds);
                let live = cluster::ask(&flags, |client, deadline| async move {
                    live::read(client, &namespaces, &args.operator_namespace, deadline).await
                })?;
                Ok(live::list("cluster", live.objects().cloned()))
            }
        }
    }
}

/// The namespaces of the manifests: of the others nothing is needed.
fn namespaces(args: &args::Plan, desired: &[Source], kinds: &Kinds) -> Vec<String> {
    let objects = manifest::values(desired.to_vec(), kinds.schemas(), &args.namespace);
    let all = objects.iter().map(|object| live::text(object, "/metadata/namespace").to_owned()).filter(|namespace| !namespace.is_empty());
    let all: std::collections::BTreeSet<String> = all.chain([args.namespace.clone()]).collect();
    all.into_iter().collect()
}

/// Plans, and compares.
///
/// # Errors
/// What cannot be read.
pub(super) fn changes(args: &args::Plan, against: &Against, policies: &Policies) -> anyhow::Result<(Report, Vec<Change>)> {
    let kinds = Kinds::new()?;
    // Once: they may come from standard input.
    let desired = sources::read(&args.filenames)?;
    let observed = against.read(args, &desired, &kinds)?;
    let live: Vec<Value> = manifest::values(observed.clone(), kinds.schemas(), &args.namespace);
    let report = super::with(args, &Manifests { desired, observed }, &kinds, policies)?;
    let changes = changes::changes(&report, &live);
    Ok((report, changes))
}

/// What is printed: unified diffs, or one JSON document.
///
/// # Errors
/// None in practice: everything in it serialises.
pub(super) fn text(changes: &[Change], output: Output) -> anyhow::Result<String> {
    Ok(match output {
        Output::Yaml => changes.iter().map(Change::unified).collect(),
        Output::Json => {
            let one = |change: &Change| json!({"object": change.object, "live": change.live, "planned": change.after});
            serde_json::to_string_pretty(&json!({"schemaVersion": 1, "changes": changes.iter().map(one).collect::<Vec<_>>()}))?
        }
    })
}
