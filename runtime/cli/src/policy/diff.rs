//! `weir policy diff`: what another policy would change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use weir_harness::{
    ask::{self, Input, Subject},
    compare::{self, Difference},
    pass::{Kinds, Manifests, Options},
    sources,
};
use weir_host::wasm::Wasm;

use super::{
    Common,
    report::Output,
    subject::{Named, SubjectFlags, named, subject},
};
use crate::{
    cluster::{self, Flags},
    exit::{Exit, Failure},
    live::{self, Live},
    names,
    plan::policies,
};

pub(super) const HELP: &str = "\
Both policies get the same inputs: every file of the folder that is a question by itself, and all manifests together, as an operator has them.
With --from-cluster both are asked about what is in a cluster: what would this policy change there? Objects are read, and nothing is written.
Compared are answers, and all objects, statuses, findings and events of the pass; Weir's own hashes and records are left out. Nothing is written.

Exit codes: 0 nothing differs, 1 something does; 3, 4 and 7 when a policy fails in a way the other does not; else as `weir policy run`.

Examples:
  weir policy diff registry.example/policies/konnect-env:1.0 ./my-policy.wasm --input manifests/
  weir policy diff registry.example/policies/konnect-env:1.0 ./my-policy.wasm --from-cluster -n gateways
  kubectl get dataplanes,konnectextensions -A -o yaml > live.yaml; weir policy diff old.wasm new.wasm --input live.yaml -o json";

/// `weir policy diff`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy that is in use.
    #[arg(value_name = "OLD", value_parser = named)]
    old: Named,
    /// The policy that would take its place.
    #[arg(value_name = "NEW", value_parser = named)]
    new: Named,
    /// What both are asked: a file, or a folder of questions and manifests.
    #[arg(long, value_name = "FILE|DIR", required_unless_present = "from_cluster", conflicts_with = "from_cluster")]
    input: Option<PathBuf>,
    /// Ask both about what is in a cluster, as its operator sees it. Nothing is written to it.
    #[arg(long)]
    from_cluster: bool,
    #[command(flatten)]
    cluster: Cluster,
    /// Settings of the new one, if they are not those of the old one.
    #[arg(long, value_name = "FILE")]
    new_settings: Option<PathBuf>,
    #[command(flatten)]
    flags: SubjectFlags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

/// How long a cluster is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which cluster, and what of it.
#[derive(Debug, clap::Args)]
pub(super) struct Cluster {
    /// With a cluster: its kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount.
    #[arg(long, env = "WEIR_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// With a cluster: look in this namespace only. Repeatable; in all by default.
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE", value_parser = names::namespace)]
    pub(super) namespaces: Vec<String>,
    /// With a cluster: the operator's own namespace, where its CA is looked for.
    #[arg(long, env = "WEIR_OPERATOR_NAMESPACE", value_name = "NAMESPACE", default_value = "weir-system", value_parser = names::namespace)]
    pub(super) operator_namespace: String,
}

impl Cluster {
    /// What is there.
    ///
    /// # Errors
    /// There is no cluster, or it cannot be read.
    pub(super) fn read(&self) -> anyhow::Result<Live> {
        let flags = Flags { kubeconfig: self.kubeconfig.clone(), timeout: PATIENCE };
        cluster::ask(
            &flags,
            |client, deadline| async move { live::read(client, &self.namespaces, &self.operator_namespace, deadline).await },
        )
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    schema_version: u32,
    inputs: usize,
    questions: usize,
    /// How often each field differs.
    fields: BTreeMap<String, usize>,
    differences: Vec<Of>,
}

/// The differences of one input.
#[derive(Serialize)]
struct Of {
    input: String,
    #[serde(flatten)]
    difference: Difference,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let old = subject(&args.old, &args.flags, &args.common)?;
    let mut new = subject(&args.new, &args.flags, &args.common)?;
    if let Some(path) = &args.new_settings {
        new.settings = super::check::settings(path)?;
    }
    if old.slot != new.slot {
        return Err(Failure::usage(format!(
            "{} is for slot {}, {} for {}",
            old.component.source, old.slot, new.component.source, new.slot
        ))
        .into());
    }
    let (host, kinds) = (policies::host(Path::new(""))?, Kinds::new()?);
    let mut report = Report { schema_version: 1, inputs: 0, questions: 0, fields: BTreeMap::new(), differences: Vec::new() };
    let mut exit = Exit::Done;
    let (place, options, inputs) = match &args.input {
        Some(path) => (path.display().to_string(), Options::default(), inputs(path)?),
        None => {
            let live = args.cluster.read()?;
            let options =
                Options { now: jiff::Timestamp::now(), operator_namespace: args.cluster.operator_namespace.clone(), ..Options::default() };
            ("the cluster".to_owned(), options, vec![("cluster".to_owned(), Input::Manifests(live.manifests()))])
        }
    };
    for (name, input) in inputs {
        exit = exit.max(report.one(&host, (&kinds, &options), (&old, &new), name, &input)?);
    }
    if report.questions == 0 {
        return Err(Failure::usage(format!("{place}: nothing in it asks slot {} anything", old.slot)).into());
    }
    if !report.differences.is_empty() {
        exit = exit.max(Exit::Held);
    }
    Ok(args.output.print(&report, || text(&report))?.max(exit))
}

/// Questions by themselves, then all manifests as one.
fn inputs(path: &Path) -> Result<Vec<(String, Input)>, Failure> {
    let mut all = Vec::new();
    let mut manifests = Vec::new();
    for source in sources::read(&[path.to_owned()])? {
        let question = serde_saphyr::from_str::<Value>(&source.text).ok().filter(|value| value.is_object() && value.get("kind").is_none());
        match question {
            Some(question) => all.push((source.name, Input::Question(question))),
            None => manifests.push(source),
        }
    }
    if !manifests.is_empty() {
        all.push(("manifests".to_owned(), Input::Manifests(Manifests { desired: manifests, observed: Vec::new() })));
    }
    Ok(all)
}

impl Report {
    fn one(
        &mut self,
        host: &Wasm,
        (kinds, options): (&Kinds, &Options),
        of: (&Subject, &Subject),
        name: String,
        input: &Input,
    ) -> anyhow::Result<Exit> {
        let old = ask::ask(host, kinds, options, of.0, input)?;
        let new = ask::ask(host, kinds, options, of.1, input)?;
        self.inputs += 1;
        self.questions += old.calls.len().max(new.calls.len());
        let worst = |asked: &ask::Asked| asked.calls.iter().map(|call| Exit::from(call.outcome)).max().unwrap_or(Exit::Done);
        for difference in compare::differences(&ask::comparable(&old), &ask::comparable(&new)) {
            *self.fields.entry(summed(&difference)).or_default() += 1;
            self.differences.push(Of { input: name.clone(), difference });
        }
        // A refusal is an answer: that it differs is said above.
        Ok(if worst(&new) > worst(&old).max(Exit::Held) { worst(&new) } else { Exit::Done })
    }
}

/// The field without the object that has it.
fn summed(difference: &Difference) -> String {
    let field = difference.field();
    match field.split_once("].") {
        Some((head, rest)) if ["objects[", "statuses["].iter().any(|list| head.starts_with(list)) => {
            let kind = head.split_once('[').map_or(head, |(_, object)| object).split(' ').next().unwrap_or_default();
            format!("{kind} {rest}")
        }
        Some(_) | None => field,
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut last = None;
    for Of { input, difference } in &report.differences {
        if last != Some(input) {
            text.push_str(&format!("{input}\n"));
            last = Some(input);
        }
        text.push_str(&format!("  {}: {} -> {}\n", difference.path, difference.old_text(), difference.new_text()));
    }
    if !report.fields.is_empty() {
        text.push_str("\nby field\n");
        for (field, count) in &report.fields {
            text.push_str(&format!("{count:>7}  {field}\n"));
        }
        text.push('\n');
    }
    text.push_str(&format!("{} difference(s) in {} input(s), {} question(s)\n", report.differences.len(), report.inputs, report.questions));
    // Strangers' words do not drive a terminal.
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}
