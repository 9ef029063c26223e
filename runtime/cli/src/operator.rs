//! `weir operator`: flags, environment and logs; the rest is `weir-operator`.

mod recorder;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ValueEnum;
use serde_json::json;
use weir_core::{
    plan::KeyAlgorithm,
    policy::{
        SlotName,
        object_hook::{MalformedWord, Word},
    },
};
use weir_host::oci::Proxies;
use weir_operator::{Config, leader, record::Recording, telemetry};

use crate::{
    args::{default_cache, named, path_if_any, slot_file},
    exit::{Exit, Failure},
    names,
};

/// Shown after the flags.
pub const HELP: &str = "\
Every flag can be given as an environment variable, named beside it.

Exit codes:
  0  stopped when it was told to
  2  usage
  8  it could not start, or lost leadership

Examples:
  weir operator --kubeconfig ~/.kube/config --leader-elect false
  weir operator --watch-namespace team-a --watch-namespace team-b
  weir operator --policy konnect-env=my-policy.wasm
  weir operator --print-config";

/// `weir operator`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount.
    #[arg(long, env = "WEIR_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The operator's own namespace: its Lease, its CA and its keys are there.
    #[arg(long, env = "WEIR_NAMESPACE", value_name = "NAMESPACE", default_value = "weir-system", value_parser = names::namespace)]
    namespace: String,
    /// Watch this namespace only. Repeatable; all namespaces by default.
    #[arg(long = "watch-namespace", env = "WEIR_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',',
          value_parser = names::namespace_if_any)]
    watch_namespaces: Vec<String>,
    /// Use this component for a slot instead of the built-in one; the file is watched. Repeatable.
    #[arg(long = "policy", env = "WEIR_POLICY", value_name = "SLOT=FILE.wasm", value_parser = slot_file, value_delimiter = ',')]
    policies: Vec<(SlotName, PathBuf)>,
    /// Settings of a slot's policy: a YAML or JSON file; the file is watched. Repeatable.
    #[arg(long = "settings", env = "WEIR_SETTINGS", value_name = "SLOT=FILE", value_parser = slot_file, value_delimiter = ',')]
    settings: Vec<(SlotName, PathBuf)>,
    /// Where compiled components are kept; empty keeps none.
    #[arg(long, env = "WEIR_CACHE_DIR", value_name = "DIR", default_value_os_t = default_cache(),
          value_parser = path_if_any())]
    cache_dir: PathBuf,
    /// Name of the cluster, as policies see it.
    #[arg(long, env = "WEIR_CLUSTER_NAME", value_name = "NAME", default_value = "", value_parser = names::label_value)]
    cluster_name: String,
    /// Label of the cluster, as policies see it. Repeatable.
    #[arg(long = "cluster-label", env = "WEIR_CLUSTER_LABEL", value_name = "KEY=VALUE", value_parser = names::label, value_delimiter = ',')]
    cluster_labels: Vec<(String, String)>,
    /// Refuse images that are known to be below Kong 3.0.0.
    #[arg(long, env = "WEIR_VALIDATE_IMAGES", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    validate_images: bool,
    /// Label key that marks Secrets for Kong's own tools.
    #[arg(long, env = "WEIR_SECRET_LABEL", value_name = "KEY", default_value = weir_api::keys::SECRET, value_parser = names::label_key)]
    secret_label: String,
    /// Secret of the cluster CA in the operator's namespace; made when it is missing.
    #[arg(long, env = "WEIR_CLUSTER_CA_SECRET", value_name = "NAME", default_value = "kong-operator-ca", value_parser = names::object)]
    cluster_ca_secret: String,
    /// Key of a cluster CA that has to be made.
    #[arg(long, env = "WEIR_CLUSTER_CA_KEY_TYPE", value_enum, default_value_t = KeyType::Ecdsa)]
    cluster_ca_key_type: KeyType,
    /// Lifetime of an admin certificate.
    #[arg(long, env = "WEIR_CERT_TTL", value_name = "DURATION", default_value = "87600h", value_parser = duration)]
    cert_ttl: Duration,
    /// How long before its end an admin certificate is renewed.
    #[arg(long, env = "WEIR_CERT_EXPIRATION_MARGIN", value_name = "DURATION", default_value = "168h", value_parser = duration)]
    cert_expiration_margin: Duration,
    /// Address of /metrics; 0 for none.
    #[arg(long, env = "WEIR_METRICS_BIND_ADDRESS", value_name = "ADDRESS", default_value = ":8080")]
    metrics_bind_address: String,
    /// Address of /healthz and /readyz; 0 for none.
    #[arg(long, env = "WEIR_HEALTH_PROBE_BIND_ADDRESS", value_name = "ADDRESS", default_value = ":8081")]
    health_probe_bind_address: String,
    /// Elect a leader among replicas.
    #[arg(long, env = "WEIR_LEADER_ELECT", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// Name of the Lease.
    #[arg(long, env = "WEIR_LEADER_ELECTION_ID", value_name = "NAME", default_value = weir_operator::config::INSTALL,
          value_parser = names::object)]
    leader_election_id: String,
    /// A leader that was not seen for so long has lost.
    #[arg(long, env = "WEIR_LEADER_ELECTION_LEASE_DURATION", value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_election_lease_duration: Duration,
    /// A leader that could not renew for so long gives up.
    #[arg(long, env = "WEIR_LEADER_ELECTION_RENEW_DEADLINE", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    leader_election_renew_deadline: Duration,
    /// How often the Lease is renewed, or tried for.
    #[arg(long, env = "WEIR_LEADER_ELECTION_RETRY_PERIOD", value_name = "DURATION", default_value = "2s", value_parser = duration)]
    leader_election_retry_period: Duration,
    /// Objects of one kind that are worked on at once.
    #[arg(long, env = "WEIR_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    max_concurrent_reconciles: u16,
    /// How log lines look.
    #[arg(long, env = "WEIR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// What is logged: a level, or levels by target such as `warn,weir_operator=debug`.
    #[arg(long, env = "WEIR_LOG_LEVEL", value_name = "FILTER", default_value = "info,kube_client=off,kube_runtime=off")]
    log_level: String,
    /// Collector of traces, OTLP over HTTP, such as http://collector:4318; none are made without it.
    #[arg(long, env = "WEIR_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Serve KongPluginInstallations.
    #[arg(long, env = "WEIR_ENABLE_PLUGIN_INSTALLATIONS", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    enable_plugin_installations: bool,
    /// Let a DataPlane use installations of any namespace, without a ReferenceGrant.
    #[arg(long, env = "WEIR_ALLOW_CROSS_NAMESPACE_PLUGINS", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true")]
    allow_cross_namespace_plugins: bool,
    /// Let ReconcilePolicies of namespaces other than the operator's answer for objects of their own namespace.
    #[arg(long, env = "WEIR_TENANT_POLICIES", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true")]
    tenant_policies: bool,
    /// A path that hooks may change in objects of a kind, such as Deployment=/spec/template/spec/hostAliases/**. A kind that is named has the
    /// paths that are named and no others; KIND=default names those of the default. Repeatable.
    #[arg(long = "hook-path", env = "WEIR_HOOK_PATH", value_name = "KIND=PATH", value_delimiter = ',', value_parser = hook_path)]
    hook_paths: Vec<Option<Word>>,
    /// Registry of plugins or policies that is spoken to in plain HTTP. Repeatable.
    #[arg(long = "insecure-registry", env = "WEIR_INSECURE_REGISTRY", value_name = "HOST[:PORT]", value_delimiter = ',')]
    insecure_registries: Vec<String>,
    /// PEM file with CAs of registries, trusted beside the system's. Repeatable.
    #[arg(long = "registry-ca", env = "WEIR_REGISTRY_CA", value_name = "FILE", value_delimiter = ',')]
    registry_cas: Vec<PathBuf>,
    /// YAML file that says how registries are reached: mirrors, CAs, proxies, credentials (docs/registries.md). It is read again when it
    /// changes.
    #[arg(long, env = "WEIR_REGISTRIES_FILE", value_name = "FILE", value_parser = path_if_any())]
    registries_file: Option<PathBuf>,
    /// Docker config with credentials for plugins and policies that name no pull Secret. It is read again when it changes.
    #[arg(long, env = "WEIR_REGISTRY_AUTH_FILE", value_name = "FILE", value_parser = path_if_any())]
    registry_auth_file: Option<PathBuf>,
    /// Run the credential helpers that this docker config names for this registry, or for what is below this path of one. Repeatable; none is
    /// run by default.
    #[arg(long = "credential-helpers", env = "WEIR_CREDENTIAL_HELPERS", value_name = "PREFIX", value_delimiter = ',')]
    credential_helpers: Vec<String>,
    /// YAML file that says whose signatures plugins and policies need (docs/registries.md). It is read again when it changes.
    #[arg(long, env = "WEIR_VERIFICATION_FILE", value_name = "FILE", value_parser = path_if_any())]
    verification_file: Option<PathBuf>,
    /// Whose certificates and logs count for keyless signatures: a trusted_root.json of sigstore. It is read again when it changes.
    #[arg(long, env = "WEIR_TRUST_ROOT", value_name = "FILE", value_parser = path_if_any())]
    trust_root: Option<PathBuf>,
    /// Addresses of Services and pods: registries there are reached only when their host is named. Repeatable; the API server's own address is
    /// one of them.
    #[arg(long = "cluster-range", env = "WEIR_CLUSTER_RANGE", value_name = "CIDR", value_delimiter = ',')]
    cluster_ranges: Vec<String>,
    /// Pull plugins and policies from this registry, or from what is below this path of one, only. Repeatable; everything is allowed by default. A
    /// registry on the operator's own loopback has to be named here, or as insecure.
    #[arg(long, env = "WEIR_ALLOWED_REGISTRIES", value_name = "PREFIX", value_delimiter = ',')]
    allowed_registries: Vec<String>,
    /// Look for Services of remote plugins in this namespace too, beside the operator's own. Repeatable. It needs the Role of
    /// deploy/rbac.yaml there.
    #[arg(long = "plugin-namespace", env = "WEIR_PLUGIN_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',',
          value_parser = names::namespace_if_any)]
    plugin_namespaces: Vec<String>,
    /// Take Services with the label cnpg.io/pluginName for remote plugins too.
    #[arg(long, env = "WEIR_CNPG_PLUGINS", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true")]
    cnpg_plugins: bool,
    /// Write what passes saw as cases into this folder, without secrets: what `weir policy test` replays. Passes that write, report or hold
    /// something are kept; at most 500 of them and 64 MiB, the oldest go.
    #[arg(long, env = "WEIR_RECORD", value_name = "DIR", value_parser = path_if_any())]
    record: Option<PathBuf>,
    /// Loopback address of /snapshots/NAMESPACE/NAME, where who may get dataplanes/snapshot is given what a pass sees of a DataPlane; 0 for
    /// none.
    #[arg(long, env = "WEIR_SNAPSHOT_BIND_ADDRESS", value_name = "ADDRESS", default_value = "0")]
    snapshot_bind_address: String,
    /// For tests: a file with seconds that are added to the clock.
    #[arg(long, env = "WEIR_CLOCK_OFFSET_FILE", value_name = "FILE", hide = true)]
    clock_offset_file: Option<PathBuf>,
    /// Print the settings in force as YAML and do nothing.
    #[arg(long)]
    print_config: bool,
}

/// Key types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyType {
    /// ECDSA on P-256.
    Ecdsa,
    /// RSA of 2048 bits.
    Rsa,
}

/// Log formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Runs the command.
///
/// # Errors
/// What keeps the operator from starting, and lost leadership.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.print_config {
        return crate::print(serde_saphyr::to_string(&print(args))?.as_bytes());
    }
    let format = match args.log_format {
        LogFormat::Text => telemetry::LogFormat::Text,
        LogFormat::Json => telemetry::LogFormat::Json,
    };
    let config = config(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let traces = {
        let _inside = runtime.enter();
        args.otlp_endpoint.as_deref().filter(|e| !e.is_empty()).map(telemetry::Traces::to).transpose()
    };
    let traces = traces.map_err(|error| Failure::usage(format!("--otlp-endpoint: {error}")))?;
    telemetry::init(format, &args.log_level, traces.as_ref()).map_err(|error| Failure::usage(format!("--log-level: {error}")))?;
    let result = runtime.block_on(weir_operator::run(config, stop()));
    if let Some(traces) = &traces {
        traces.shutdown();
    }
    // What is still running belongs to nobody any more.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result?;
    Ok(Exit::Done)
}

/// Resolves at SIGTERM or SIGINT.
async fn stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

fn config(args: &Args) -> anyhow::Result<Config> {
    if args.cert_expiration_margin >= args.cert_ttl {
        return Err(
            Failure::usage("--cert-expiration-margin must be shorter than --cert-ttl, or every certificate is renewed at once").into()
        );
    }
    let identity = identity();
    let leader = leader::Config {
        lease_duration: args.leader_election_lease_duration,
        renew_deadline: args.leader_election_renew_deadline,
        retry_period: args.leader_election_retry_period,
        ..leader::Config::new(&args.namespace, &args.leader_election_id, &identity)
    };
    Ok(Config {
        kubeconfig: args.kubeconfig.clone(),
        namespace: args.namespace.clone(),
        watch_namespaces: args.watch_namespaces.iter().filter(|n| !n.is_empty()).cloned().collect(),
        identity,
        policies: args.policies.clone(),
        settings: args.settings.clone(),
        cache_dir: named(Some(&args.cache_dir)).cloned(),
        cluster_name: args.cluster_name.clone(),
        cluster_labels: args.cluster_labels.iter().cloned().collect(),
        validate_images: args.validate_images,
        secret_label: args.secret_label.clone(),
        ca_secret: args.cluster_ca_secret.clone(),
        ca_key: match args.cluster_ca_key_type {
            KeyType::Ecdsa => KeyAlgorithm::EcdsaP256,
            KeyType::Rsa => KeyAlgorithm::Rsa2048,
        },
        certificate_ttl: args.cert_ttl,
        certificate_margin: args.cert_expiration_margin,
        metrics_address: args.metrics_bind_address.clone(),
        probes_address: args.health_probe_bind_address.clone(),
        leader: args.leader_elect.then_some(leader),
        concurrency: usize::from(args.max_concurrent_reconciles),
        plugin_installations: args.enable_plugin_installations,
        cross_namespace_plugins: args.allow_cross_namespace_plugins,
        tenant_policies: args.tenant_policies,
        hook_paths: args.hook_paths.iter().flatten().cloned().collect(),
        insecure_registries: given(&args.insecure_registries),
        registry_cas: args.registry_cas.iter().filter(|path| !path.as_os_str().is_empty()).cloned().collect(),
        allowed_registries: given(&args.allowed_registries),
        cluster_ranges: ranges(&args.cluster_ranges, |name| std::env::var(name).ok()),
        registries_file: named(args.registries_file.as_ref()).cloned(),
        registry_auth_file: named(args.registry_auth_file.as_ref()).cloned(),
        credential_helpers: given(&args.credential_helpers),
        verification_file: named(args.verification_file.as_ref()).cloned(),
        trust_root: named(args.trust_root.as_ref()).cloned(),
        plugin_namespaces: given(&args.plugin_namespaces),
        cnpg_plugins: args.cnpg_plugins,
        proxies: proxies(|name| std::env::var(name).ok()),
        clock_offset_file: args.clock_offset_file.clone(),
        recorder: recorder(args)?,
        snapshots_address: args.snapshot_bind_address.clone(),
    })
}

/// Who writes cases, where somebody wants some.
fn recorder(args: &Args) -> Result<Option<Recording>, Failure> {
    let folder = named(args.record.as_ref());
    let serves = !["", "0"].contains(&args.snapshot_bind_address.as_str());
    if folder.is_none() && !serves {
        return Ok(None);
    }
    Ok(Some(Recording(Arc::new(recorder::Cases::new(folder.map(PathBuf::as_path))?))))
}

/// An environment variable that is empty gives one empty value.
fn given(values: &[String]) -> Vec<String> {
    values.iter().filter(|value| !value.is_empty()).cloned().collect()
}

/// What is given, and the API server's own address, as every pod knows it.
fn ranges(given_ranges: &[String], variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let server = variable("KUBERNETES_SERVICE_HOST").filter(|host| host.parse::<std::net::IpAddr>().is_ok());
    given(given_ranges).into_iter().chain(server).collect()
}

/// The proxies that every program takes from its environment, in lower or upper case.
pub(crate) fn proxies(variable: impl Fn(&str) -> Option<String>) -> Proxies {
    let either = |name: &str| variable(&name.to_lowercase()).or_else(|| variable(name)).filter(|value| !value.is_empty());
    Proxies { https: either("HTTPS_PROXY"), http: either("HTTP_PROXY"), no_proxy: either("NO_PROXY") }
}

/// The pod's name, else the host's; with a random part, since two processes of one name (pods on the host's network) are two candidates.
fn identity() -> String {
    let name = ["POD_NAME", "HOSTNAME"].iter().find_map(|key| std::env::var(key).ok().filter(|v| !v.is_empty()));
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|n| n.trim().to_owned()));
    // Seeded by the operating system, differently for each process.
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
    format!("{}_{random:016x}", name.filter(|n| !n.is_empty()).unwrap_or_else(|| "weir".into()))
}

/// The settings in force, by flag. None of them is a secret.
fn print(args: &Args) -> serde_json::Value {
    let files = |all: &[(SlotName, PathBuf)]| all.iter().map(|(slot, path)| format!("{slot}={}", path.display())).collect::<Vec<_>>();
    let seconds = |d: Duration| format!("{}s", d.as_secs_f64());
    let mut all = json!({
        "kubeconfig": args.kubeconfig,
        "namespace": args.namespace,
        "watch-namespace": args.watch_namespaces,
        "policy": files(&args.policies),
        "settings": files(&args.settings),
        "cache-dir": args.cache_dir,
        "cluster-name": args.cluster_name,
        "cluster-label": args.cluster_labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
        "validate-images": args.validate_images,
        "secret-label": args.secret_label,
        "cluster-ca-secret": args.cluster_ca_secret,
        "cluster-ca-key-type": args.cluster_ca_key_type.to_possible_value().map(|v| v.get_name().to_owned()),
        "cert-ttl": seconds(args.cert_ttl),
        "cert-expiration-margin": seconds(args.cert_expiration_margin),
        "metrics-bind-address": args.metrics_bind_address,
        "health-probe-bind-address": args.health_probe_bind_address,
        "leader-elect": args.leader_elect,
        "leader-election-id": args.leader_election_id,
        "leader-election-lease-duration": seconds(args.leader_election_lease_duration),
        "leader-election-renew-deadline": seconds(args.leader_election_renew_deadline),
        "leader-election-retry-period": seconds(args.leader_election_retry_period),
        "max-concurrent-reconciles": args.max_concurrent_reconciles,
        "log-format": args.log_format.to_possible_value().map(|v| v.get_name().to_owned()),
        "log-level": args.log_level,
        "otlp-endpoint": args.otlp_endpoint,
        "enable-plugin-installations": args.enable_plugin_installations,
        "allow-cross-namespace-plugins": args.allow_cross_namespace_plugins,
        "tenant-policies": args.tenant_policies,
        "hook-path": args.hook_paths.iter().flatten().map(ToString::to_string).collect::<Vec<_>>(),
        "insecure-registry": args.insecure_registries,
        "registry-ca": args.registry_cas,
        "allowed-registries": args.allowed_registries,
        "registries-file": args.registries_file,
        "registry-auth-file": args.registry_auth_file,
        "credential-helpers": args.credential_helpers,
        "verification-file": args.verification_file,
        "trust-root": args.trust_root,
        "cluster-range": args.cluster_ranges,
        "plugin-namespace": args.plugin_namespaces,
        "cnpg-plugins": args.cnpg_plugins,
        "clock-offset-file": args.clock_offset_file,
    });
    // The macro takes no more at once.
    if let Some(all) = all.as_object_mut() {
        all.insert("record".into(), json!(args.record));
        all.insert("snapshot-bind-address".into(), json!(args.snapshot_bind_address));
    }
    all
}

/// An environment variable that is empty names nothing.
fn hook_path(text: &str) -> Result<Option<Word>, MalformedWord> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write for example 15s, 30m or 87600h");
    let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(signed).map_err(|_| wrong())
}
