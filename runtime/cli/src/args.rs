//! Command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use weir_core::policy::SlotName;

use crate::names;

/// Kong gateways on Kubernetes, with reconciliation policies as WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "weir", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plan manifests without a cluster: every object, status and event the operator would write.
    ///
    /// The reconcile path is the operator's own, policies and limits included.
    #[command(after_help = PLAN_HELP)]
    Plan(Box<Plan>),
    /// Run the operator: DataPlanes and KonnectExtensions of a cluster converge.
    #[command(after_help = crate::operator::HELP)]
    Operator(Box<crate::operator::Args>),
    /// Try, test, measure, compare, publish, fetch and check policies, without a cluster.
    #[command(after_help = crate::policy::HELP)]
    Policy(Box<crate::policy::Args>),
    /// Look at remote plugins, without a cluster.
    #[command(after_help = crate::remote::HELP)]
    Remote(Box<crate::remote::Args>),
    /// Say what a word in a status, an event or a report means, and what to do about it.
    #[command(after_help = crate::explain::HELP)]
    Explain(crate::explain::Args),
    /// Print the CustomResourceDefinitions, or apply them to a cluster.
    Crds(Crds),
    /// Before an uninstall: stop the operator and take its finalizers off, which nobody would do afterwards.
    #[command(after_help = crate::cleanup::HELP)]
    Cleanup(crate::cleanup::Args),
    /// Coming from Kong's operator.
    Migrate(crate::migrate::Args),
    /// Ask a URL until it answers well: for tests of an install, and for containers without a shell.
    Probe(crate::probe::Args),
    /// Print a completion script for a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

const PLAN_HELP: &str = "\
Exit codes (the highest wins):
  0  all planned; waiting for the cluster is fine
  1  something was refused or is held; with --diff also: something differs
  2  usage, or unreadable input
  3  a policy trapped or gave an unusable answer
  4  a policy ran out of time or memory
  5  a policy was not available, or a remote plugin cannot be reached
  6  a certificate is not accepted, by a remote plugin or of one
  7  a component is not compatible with its slot, or a remote plugin is another one or has no slot
  8  internal error

Examples:
  weir plan -f manifests/
  weir plan -f gateway.yaml --artifact registry.example/plugins/myheader:1.0=./myheader
  weir plan -f gateway.yaml --policy konnect-env=target/guests/konnect-env.wasm -o json
  weir plan -f gateway.yaml --diff
  weir plan -f manifests/ --watch
  weir plan -f gateway.yaml --remote env.example.com=127.0.0.1:9090 --remote-server-name env --remote-ca plugin.crt --remote-cert client.crt --remote-key client.key
  kubectl get dataplanes -A -o yaml | weir plan -f -";

/// `weir plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Manifest: a file, a directory (searched for .yaml, .yml and .json), or `-` for standard input. Repeatable.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", required = true)]
    pub filenames: Vec<PathBuf>,
    /// Use this component for a slot instead of the built-in one. Repeatable.
    #[arg(long = "policy", value_name = "SLOT=FILE.wasm", value_parser = slot_file)]
    pub policies: Vec<(SlotName, PathBuf)>,
    /// Settings of a slot's policy: a YAML or JSON file. Repeatable.
    #[arg(long = "settings", value_name = "SLOT=FILE", value_parser = slot_file)]
    pub settings: Vec<(SlotName, PathBuf)>,
    /// Policies that answer over gRPC.
    #[command(flatten)]
    pub remotes: crate::plan::remotes::Flags,
    /// Observed state: live objects, their children and their status, as `kubectl get -o yaml` prints them.
    #[arg(long, value_name = "DIR")]
    pub observed: Option<PathBuf>,
    /// Print what would change, as `kubectl diff` does: live, last applied by Weir, and new. Against the cluster of the kubeconfig, or against
    /// a directory of live objects (`--diff=DIR`). Nothing is written. Exit code 1 when anything differs.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "observed",
          value_parser = path_if_any())]
    pub diff: Option<PathBuf>,
    /// Stay, and plan again when an input file changes. Only what changed is printed.
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// Kubeconfig file of --diff; without it $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount.
    #[arg(long, env = "WEIR_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Artifact of a KongPluginInstallation: what `spec.image` names, as a directory of the plugin's files, an OCI image layout (directory or
    /// tar), or a tar archive. Repeatable. An installation without one is planned as if its image were still being fetched.
    #[arg(long = "artifact", value_name = "REF=DIR|LAYOUT|TAR", value_parser = artifact)]
    pub artifacts: Vec<(String, PathBuf)>,
    /// Pull the artifacts that no --artifact gives from their registries.
    #[arg(long)]
    pub pull: bool,
    /// How --pull reaches registries. Pull Secrets of the manifests are not used: their values are never read.
    #[command(flatten)]
    pub registry: crate::registry::Flags,
    /// YAML file that says whose signatures artifacts need (docs/registries.md); nothing is verified without it. Signatures are in the registry,
    /// so that --pull is needed, also for what --artifact gives.
    #[arg(long, env = "WEIR_VERIFICATION_FILE", value_name = "FILE", value_parser = path_if_any())]
    pub verification_file: Option<PathBuf>,
    /// Whose certificates and logs count for keyless signatures: a trusted_root.json of sigstore.
    #[arg(long, env = "WEIR_TRUST_ROOT", value_name = "FILE", value_parser = path_if_any())]
    pub trust_root: Option<PathBuf>,
    /// Let DataPlanes use installations of other namespaces without a ReferenceGrant, as Kong's operator does.
    #[arg(long, env = "WEIR_ALLOW_CROSS_NAMESPACE_PLUGINS")]
    pub allow_cross_namespace_plugins: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    pub output: Output,
    /// The time of the pass (RFC 3339). Fixed by default, so that a plan is the same on every machine.
    #[arg(long, value_name = "TIME", default_value = "2026-01-01T00:00:00Z")]
    pub now: jiff::Timestamp,
    /// Namespace of objects that name none.
    #[arg(long, value_name = "NAMESPACE", default_value = "default", value_parser = names::namespace)]
    pub namespace: String,
    /// The operator's own namespace, where its CA is looked for.
    #[arg(long, env = "WEIR_OPERATOR_NAMESPACE", value_name = "NAMESPACE", default_value = "weir-system", value_parser = names::namespace)]
    pub operator_namespace: String,
    /// Name of the cluster, as policies see it.
    #[arg(long, env = "WEIR_CLUSTER_NAME", value_name = "NAME", default_value = "", value_parser = names::label_value)]
    pub cluster_name: String,
    /// Label of the cluster, as policies see it. Repeatable.
    #[arg(long = "cluster-label", value_name = "KEY=VALUE", value_parser = names::label)]
    pub cluster_labels: Vec<(String, String)>,
    /// Refuse images that are known to be below Kong 3.0.0.
    #[arg(long, env = "WEIR_VALIDATE_IMAGES", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub validate_images: bool,
    /// Where compiled components are kept; empty keeps none.
    #[arg(long, env = "WEIR_CACHE_DIR", value_name = "DIR", default_value_os_t = default_cache(),
          value_parser = clap::builder::TypedValueParser::map(clap::builder::OsStringValueParser::new(), PathBuf::from))]
    pub cache_dir: PathBuf,
    /// Say nothing on standard error but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `weir crds`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Crds {
    /// What to do; they are printed without a word.
    #[command(subcommand)]
    pub action: Option<CrdsAction>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    pub output: Output,
}

/// `weir crds …`.
#[derive(Debug, Subcommand)]
pub enum CrdsAction {
    /// Apply them to a cluster, server-side; the versions and the conversion that are there stay.
    #[command(after_help = crate::crds::HELP)]
    Apply(crate::crds::Args),
}

/// Output formats a machine reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// YAML documents.
    Yaml,
    /// One JSON document.
    Json,
}

pub(crate) fn slot_file(text: &str) -> Result<(SlotName, PathBuf), String> {
    let slots = || SlotName::ALL.map(SlotName::as_str).join(", ");
    let (slot, file) = text.split_once('=').ok_or_else(|| format!("write SLOT=FILE, with one of the slots {}", slots()))?;
    let slot = SlotName::parse(slot).ok_or_else(|| format!("no slot {slot:?}; there are {}", slots()))?;
    if file.is_empty() {
        return Err("the file is missing after `=`".into());
    }
    Ok((slot, file.into()))
}

/// The path follows the last `=`: neither a reference nor a usual path has one.
fn artifact(text: &str) -> Result<(String, PathBuf), String> {
    match text.rsplit_once('=') {
        Some((reference, path)) if !reference.is_empty() && !path.is_empty() => Ok((reference.to_owned(), path.into())),
        Some(_) | None => Err("write REF=PATH, with the reference as spec.image has it".into()),
    }
}

/// A path, or nothing: an environment variable that is empty is there.
pub(crate) fn path_if_any() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    clap::builder::TypedValueParser::map(clap::builder::OsStringValueParser::new(), PathBuf::from)
}

/// What a flag of [`path_if_any`] names, if anything.
pub(crate) fn named(path: Option<&PathBuf>) -> Option<&PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

/// `$XDG_CACHE_HOME/weir`, else `~/.cache/weir`, else nothing.
pub(crate) fn default_cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
    base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .map(|base| base.join("weir"))
        .unwrap_or_default()
}
