//! How long the operator takes for many DataPlanes at once, and what that costs: CPU, memory, requests.

mod audit;
mod process;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;
use weir_testkit::{ControlPlane, Operator, OperatorOptions, Options, free_port};

/// The figures of the reference operator (Go) on the same kind of control plane with 100 DataPlanes, one run: 9 to 10 s, 8 CPU-seconds,
/// 128 MiB, about 15 requests each.
const REFERENCE: &str = "reference operator, 100: 9-10 s, 8 CPU-s, 128 MiB, ~15 requests each on the whole server";
/// Creations at once.
const CREATORS: usize = 16;
const LIMIT: Duration = Duration::from_secs(300);

/// Measures `weir operator` against a real control plane.
#[derive(Parser)]
struct Args {
    /// The binary
    #[arg(long)]
    weir: PathBuf,
    /// How many DataPlanes; one fresh control plane each
    #[arg(long, value_delimiter = ',', default_values_t = [100, 500, 2000])]
    counts: Vec<usize>,
    /// One JSON line per count instead of text
    #[arg(long)]
    json: bool,
}

struct Figures {
    count: usize,
    creating: Duration,
    deployments: Duration,
    ready: Duration,
    cpu: f64,
    peak: u64,
    idle: u64,
    requests: audit::Counts,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    for count in &args.counts {
        let figures = measure(&runtime, &args.weir, *count)?;
        println!("{}", if args.json { figures.json() } else { figures.text() });
    }
    if !args.json {
        println!("{REFERENCE}");
    }
    Ok(())
}

fn measure(runtime: &tokio::runtime::Runtime, weir: &Path, count: usize) -> Result<Figures> {
    // One pod each; a node takes 110 by default, the fake ones take more.
    let options = Options { nodes: 1 + count / 500, stock_limits: true, ..Options::default() };
    eprintln!("bench: {count} DataPlanes: control plane ...");
    let plane = ControlPlane::start(&options, &mut |line: &str| eprintln!("bench: {line}"))?;
    let client = runtime.block_on(async { plane.client() })?;
    runtime.block_on(install(weir, &client))?;
    let port = free_port()?;
    let operator = Operator::start(&OperatorOptions {
        weir: weir.to_owned(),
        kubeconfig: plane.kubeconfig().to_owned(),
        args: ["--leader-elect", "true", "--metrics-bind-address", "0", "--health-probe-bind-address"]
            .map(String::from)
            .into_iter()
            .chain([format!("127.0.0.1:{port}")])
            .collect(),
        env: Vec::new(),
        log: plane.run_dir().join("operator.log"),
    })?;
    let figures = runtime.block_on(run(&plane, &operator, &client, port, count));
    figures.with_context(|| format!("the operator's last words:\n{}", tail(&operator.log())))
}

async fn run(plane: &ControlPlane, operator: &Operator, client: &Client, port: u16, count: usize) -> Result<Figures> {
    wait("the operator is ready", || process::is_ready(port)).await?;
    // It leads a moment later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = process::usage(operator.pid())?;
    let begun = Instant::now();
    stream::iter(0..count).map(|index| create(client, index)).buffer_unordered(CREATORS).try_collect::<Vec<_>>().await?;
    let created = begun.elapsed();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "bench");
    let metadata = ListParams::default();
    wait("all Deployments exist", || async { Ok(deployments.list_metadata(&metadata).await?.items.len() >= count) }).await?;
    let exist = begun.elapsed();
    let planes = data_planes(client);
    wait("all DataPlanes are Ready", || async {
        let all = planes.list(&metadata).await?;
        Ok(all.items.iter().filter(|o| is_ready(o)).count() >= count)
    })
    .await?;
    let ready = begun.elapsed();
    // What trails behind belongs to it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let used = process::usage(operator.pid())?;
    Ok(Figures {
        count,
        creating: created,
        deployments: exist.saturating_sub(created),
        ready: ready.saturating_sub(created),
        cpu: used.cpu_seconds - idle.cpu_seconds,
        peak: used.peak_bytes,
        idle: idle.peak_bytes,
        requests: audit::count(plane.audit_log(), "bench")?,
    })
}

async fn install(weir: &Path, client: &Client) -> Result<()> {
    let crds = std::process::Command::new(weir).args(["crds", "-o", "json"]).output()?;
    let crds: serde_json::Value = serde_json::from_slice(&crds.stdout)?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    for crd in crds.get("items").and_then(|i| i.as_array()).context("`weir crds -o json` gave no list")? {
        let name = crd.pointer("/metadata/name").and_then(|n| n.as_str()).context("a CRD without a name")?;
        api.patch(name, &PatchParams::apply("bench").force(), &Patch::Apply(crd)).await?;
        wait("the CRD is served", || async {
            let crd = api.get(name).await?;
            let conditions = crd.data.pointer("/status/conditions").and_then(|c| c.as_array());
            Ok(conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Established" && c["status"] == "True")))
        })
        .await?;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["bench", "weir-system"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
    }
    Ok(())
}

fn data_planes(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway-operator.konghq.com", "v1beta1", "DataPlane"));
    Api::namespaced_with(client.clone(), "bench", &resource)
}

async fn create(client: &Client, index: usize) -> Result<()> {
    let data_plane = serde_json::from_value(json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "metadata": {"name": format!("dp-{index}")},
        "spec": {
            "deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong/kong-gateway:3.15"}]}}},
            "network": {"services": {"ingress": {"type": "ClusterIP"}}},
        },
    }))?;
    data_planes(client).create(&PostParams::default(), &data_plane).await?;
    Ok(())
}

fn is_ready(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(|c| c.as_array());
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

async fn wait<F: Future<Output = Result<bool>>>(what: &str, condition: impl Fn() -> F) -> Result<()> {
    let begun = Instant::now();
    while !condition().await? {
        if begun.elapsed() > LIMIT {
            bail!("{what}: not after {} s", LIMIT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

fn list(counts: &std::collections::BTreeMap<String, u64>) -> String {
    counts.iter().map(|(what, n)| format!("{what} {n}")).collect::<Vec<_>>().join(", ")
}

impl Figures {
    #[allow(clippy::cast_precision_loss, reason = "counts for people")]
    fn each(&self, requests: u64) -> f64 {
        requests as f64 / self.count as f64
    }

    fn json(&self) -> String {
        json!({
            "count": self.count, "creatingSeconds": self.creating.as_secs_f64(), "deploymentsSeconds": self.deployments.as_secs_f64(),
            "readySeconds": self.ready.as_secs_f64(), "cpuSeconds": self.cpu, "peakBytes": self.peak, "idlePeakBytes": self.idle,
            "operatorRequestsEach": self.each(self.requests.operator), "operatorEventsEach": self.each(self.requests.events),
            "serverRequestsEach": self.each(self.requests.server), "byVerb": self.requests.verbs, "others": self.requests.others,
        })
        .to_string()
    }

    fn text(&self) -> String {
        let mib = |bytes: u64| bytes >> 20;
        format!(
            "{:>5} DataPlanes created in {:.1} s; after the last: Deployments {:.1} s, all Ready {:.1} s; {:.2} CPU-s, peak {} MiB (idle {}); \
             requests each: {:.1} by the operator (and {:.1} events), {:.1} on the whole server\n      {}\n      others: {}",
            self.count,
            self.creating.as_secs_f64(),
            self.deployments.as_secs_f64(),
            self.ready.as_secs_f64(),
            self.cpu,
            mib(self.peak),
            mib(self.idle),
            self.each(self.requests.operator),
            self.each(self.requests.events),
            self.each(self.requests.server),
            list(&self.requests.verbs),
            list(&self.requests.others),
        )
    }
}
