//! `weir policy record`: what a cluster has of a DataPlane, as a case.

use std::{collections::BTreeMap, path::PathBuf};

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use weir_core::{hash, policy::SlotName};
use weir_harness::{
    pass::{Kinds, Options},
    record::{self, Ca, CaKey, Component, Folder, OperatorFacts, Recording},
    run::{Runner, Status},
    stock::{Components, Stock},
    suite,
};
use weir_host::wasm::{Limits, MAX_COMPONENT, Wasm};

use super::diff::Cluster;
use crate::{
    args::{default_cache, slot_file},
    exit::{Exit, Failure},
    live::{CA_SECRET, Live, text},
    plan::policies,
};

pub(super) const HELP: &str = "\
Each DataPlane becomes a folder NAMESPACE.NAME below the output folder: the DataPlane and what it refers to (input/), its children (observed/),
and what a pass over them gives now (expected.yaml). `weir policy test FOLDER` replays it without the cluster. Nothing is written to the cluster.

Values of Secrets, certificates, keys, tokens of Konnect, passwords in variables and in URLs are replaced before anything is written; names stay.
Look through a case all the same before you give it away: nobody knows every form that a secret can have.

The policies are the built-in ones; --policy and --settings take others, which become part of the case.

Exit codes: 0 all recorded, and each replays; 1 a DataPlane is not there; 2 usage, or a folder that is there already; 5 the cluster does not
answer or does not allow it; 8 a case does not replay.

Examples:
  weir policy record --from-cluster -n gateways edge -o cases/
  weir policy record --from-cluster -n gateways edge -o cases/ --policy konnect-env=my-policy.wasm; weir policy test cases/";

/// `weir policy record`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// DataPlanes, in all namespaces that are looked at.
    #[arg(value_name = "NAME", required = true)]
    data_planes: Vec<String>,
    /// Record what is in the cluster of the kubeconfig.
    #[arg(long, required = true)]
    from_cluster: bool,
    #[command(flatten)]
    cluster: Cluster,
    /// Where the folders are made.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Use this component for a slot instead of the built-in one. Repeatable.
    #[arg(long = "policy", value_name = "SLOT=FILE.wasm", value_parser = slot_file)]
    policies: Vec<(SlotName, PathBuf)>,
    /// Settings of a slot's policy: a YAML or JSON file. Repeatable.
    #[arg(long = "settings", value_name = "SLOT=FILE", value_parser = slot_file)]
    settings: Vec<(SlotName, PathBuf)>,
    /// Where compiled components are kept; empty keeps none.
    #[arg(long, env = "WEIR_CACHE_DIR", value_name = "DIR", default_value_os_t = default_cache(),
          value_parser = crate::args::path_if_any())]
    cache_dir: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let host = policies::host(&args.cache_dir)?;
    let loaded = policies::load(&host, &args.policies, &args.settings, Limits::default())?;
    if let Some(problem) = loaded.problems.first() {
        return Err(Failure { exit: problem.exit, message: problem.message.clone() }.into());
    }
    let kinds = Kinds::new()?;
    let live = args.cluster.read()?;
    let mut exit = Exit::Done;
    let mut said = String::new();
    for name in &args.data_planes {
        let found: Vec<&Value> =
            live.users.iter().filter(|o| text(o, "/kind") == "DataPlane" && text(o, "/metadata/name") == name).collect();
        if found.is_empty() {
            exit = exit.max(Exit::Held);
            said.push_str(&format!("DataPlane {name} is not there\n"));
        }
        for data_plane in found {
            let recording = recording(args, &live, data_plane)?;
            let folder = args.output.join(&recording.name);
            let files = record::files(recording, &kinds, &loaded.policies)?;
            Folder::one(&folder, &files).map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
            replay(&host, &folder.join("case.yaml"))?;
            said.push_str(&format!("wrote {}\n", folder.display()));
        }
    }
    Ok(crate::print(said.as_bytes())?.max(exit))
}

/// The case has to pass where it was made.
fn replay(host: &Wasm, case: &std::path::Path) -> anyhow::Result<()> {
    let cases = suite::read(case)?;
    let none = &mut |_: &str| Err(Failure { exit: Exit::Internal, message: "a recorded case fetches nothing".into() });
    let components = Components::read(&cases, None, none)?;
    let runner = Runner { kinds: Kinds::new()?, update: false };
    let mut stock = Stock::new(host, &components);
    for case in &cases {
        let ran = runner.run(case, &mut stock);
        if ran.status != Status::Passed {
            let why: Vec<&str> = ran.misses.iter().map(|miss| miss.message.as_str()).collect();
            let message = format!("{}: does not replay: {}", ran.origin, why.join("; "));
            return Err(Failure { exit: Exit::Internal, message }.into());
        }
    }
    Ok(())
}

/// What a pass over one DataPlane reads.
fn recording(args: &Args, live: &Live, data_plane: &Value) -> anyhow::Result<Recording> {
    let (namespace, name) = (text(data_plane, "/metadata/namespace"), text(data_plane, "/metadata/name"));
    let part = Part { live, data_plane, namespace, name };
    let mut observed: Vec<Value> = live.objects().filter(|object| part.has(object)).cloned().collect();
    observed.iter_mut().filter(|object| text(object, "/kind") != "Deployment").for_each(without_fields);
    let mut desired = data_plane.clone();
    without_fields(&mut desired);
    let now = jiff::Timestamp::now();
    let mut files = BTreeMap::new();
    Ok(Recording {
        name: format!("{namespace}.{name}"),
        description: format!("What a cluster had of DataPlane {namespace}/{name} at {now}."),
        desired: vec![desired],
        observed,
        options: Options { now, operator: authority(args, live), ..Options::default() },
        components: components(args, &mut files)?,
        files,
    })
}

/// The cluster CA by its digest, wherever the operator is installed.
fn authority(args: &Args, live: &Live) -> Option<OperatorFacts> {
    let namespace = &args.cluster.operator_namespace;
    let is_ca = |object: &&Value| {
        text(object, "/kind") == "Secret" && text(object, "/metadata/namespace") == namespace && text(object, "/metadata/name") == CA_SECRET
    };
    let certificate = live.others.iter().find(is_ca)?.pointer("/data/tls.crt")?;
    let certificate: ByteString = serde_json::from_value(certificate.clone()).ok()?;
    let ca = Ca { digest: hash::digest(&certificate.0), key: CaKey::default(), ends: None };
    Some(OperatorFacts { ca: Some(ca), ..OperatorFacts::default() })
}

/// Components are copied into the case, so that it needs nothing else.
fn components(args: &Args, files: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<BTreeMap<SlotName, Component>> {
    let mut all: BTreeMap<SlotName, Component> = BTreeMap::new();
    for (slot, path) in &args.policies {
        // Under its name: it stands in what is expected.
        let file = format!("components/{slot}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        files.insert(file.clone(), super::files::whole(path, MAX_COMPONENT as u64)?);
        all.entry(*slot).or_default().source = Some(json!({"file": file}));
    }
    for (slot, path) in &args.settings {
        all.entry(*slot).or_default().settings = super::check::settings(path)?;
    }
    Ok(all)
}

/// Who owns which field is read of Deployments only.
fn without_fields(object: &mut Value) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
}

/// One DataPlane in everything that is there.
struct Part<'a> {
    live: &'a Live,
    data_plane: &'a Value,
    namespace: &'a str,
    name: &'a str,
}

impl Part<'_> {
    /// Whether a pass over the DataPlane reads this object.
    fn has(&self, object: &Value) -> bool {
        let (kind, namespace, name) = (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let here = namespace == self.namespace;
        match kind {
            "Namespace" => name == self.namespace,
            "DataPlane" => here && name == self.name,
            "KonnectExtension" => here && self.names("/spec/extensions", name),
            "KongPluginInstallation" => self.installs(namespace, name),
            "ReferenceGrant" => true,
            "ReplicaSet" => here && self.deployments().any(|uid| owned(object, uid)),
            "Secret" => here && (self.owns(object) || self.is_named_by_extension(name) || self.may_want(name)),
            _ => here && (self.owns(object) || self.may_want(name)),
        }
    }

    fn owns(&self, object: &Value) -> bool {
        owned(object, text(self.data_plane, "/metadata/uid"))
    }

    /// A name that the DataPlane's children have, whoever holds it.
    fn may_want(&self, name: &str) -> bool {
        let given = text(self.data_plane, "/spec/network/services/ingress/name");
        let prefixes = ["dataplane-", "dataplane-admin-", "dataplane-ingress-"];
        name == self.name
            || (!given.is_empty() && name == given)
            || prefixes.iter().any(|prefix| name.starts_with(&format!("{prefix}{}", self.name)))
    }

    fn names(&self, list: &str, name: &str) -> bool {
        let items = self.data_plane.pointer(list).and_then(Value::as_array).into_iter().flatten();
        items.into_iter().any(|item| text(item, "/name") == name)
    }

    fn installs(&self, namespace: &str, name: &str) -> bool {
        let items = self.data_plane.pointer("/spec/pluginsToInstall").and_then(Value::as_array).into_iter().flatten();
        items.into_iter().any(|item| {
            let of = text(item, "/namespace");
            text(item, "/name") == name && (if of.is_empty() { self.namespace } else { of }) == namespace
        })
    }

    fn is_named_by_extension(&self, name: &str) -> bool {
        let extensions = self.live.users.iter().filter(|object| text(object, "/kind") == "KonnectExtension");
        extensions
            .filter(|object| text(object, "/metadata/namespace") == self.namespace)
            .any(|object| crate::live::secret_name(object) == Some(name))
    }

    fn deployments(&self) -> impl Iterator<Item = &str> {
        let own = self.live.others.iter().filter(|object| text(object, "/kind") == "Deployment" && self.owns(object));
        own.map(|object| text(object, "/metadata/uid"))
    }
}

fn owned(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    !uid.is_empty() && owners.into_iter().any(|owner| text(owner, "/uid") == uid)
}
