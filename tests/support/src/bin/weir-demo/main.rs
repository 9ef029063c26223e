//! The demo's second half: a real control plane, the operator in it, and what a person would do with both. `cargo xtask demo` runs it.

mod cluster;
mod narrate;
mod published;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use kube::Client;
use serde_json::{Value, json};
use weir_testkit::{ControlPlane, Operator, OperatorOptions, Options, User, give_addresses};

use cluster::{Cluster, EXAMPLES_NAMESPACE, OPERATOR_NAMESPACE};
use narrate::{heading, say};

const LIMIT: Duration = Duration::from_secs(90);
/// The ServiceAccount's user: the demo's operator may do what its RBAC manifests say, and nothing else.
const USER: &str = "system:serviceaccount:weir-system:weir";

/// Runs the operator on a control plane of its own and shows what it does.
#[derive(Parser)]
struct Args {
    /// The `weir` binary
    #[arg(long)]
    weir: PathBuf,
    /// Directory with examples
    #[arg(long)]
    examples: PathBuf,
    /// The konnect-env policy to begin with
    #[arg(long)]
    policy: PathBuf,
    /// The one that takes its place
    #[arg(long)]
    other: PathBuf,
    /// One that fails, for the part that publishes policies
    #[arg(long)]
    broken: PathBuf,
    /// Leave it running at the end, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    heading("A Kubernetes control plane on this machine: etcd, API server, controllers, scheduler, and fake nodes");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:weir-system", "system:authenticated"].map(String::from);
    let options = Options { users: vec![User { name: USER.into(), groups: groups.to_vec() }], ..Options::default() };
    let plane = ControlPlane::start(&options, &mut |line: &str| say(line))?;
    let client = runtime.block_on(async { plane.client() })?;
    let addresses = runtime.spawn(give_addresses(client.clone()));
    let shown = runtime.block_on(show(&args, &plane, &client));
    addresses.abort();
    shown
}

async fn show(args: &Args, plane: &ControlPlane, client: &Client) -> Result<()> {
    let cluster = Cluster::new(client.clone());
    heading("What an administrator installs: CRDs, the operator's rights; then the operator, as that ServiceAccount");
    cluster.install().await?;
    let policy = plane.run_dir().join("konnect-env.wasm");
    std::fs::copy(&args.policy, &policy).with_context(|| format!("{}: run `cargo xtask guests`", args.policy.display()))?;
    let registry = published::registry()?;
    let mut more: Vec<String> = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"].map(String::from).to_vec();
    more.extend(registry.iter().flat_map(|registry| ["--insecure-registry".to_owned(), registry.host()]));
    let mut operator = Operator::start(&OperatorOptions {
        weir: args.weir.clone(),
        kubeconfig: plane.kubeconfig_of(USER)?,
        args: ["--policy".to_owned(), format!("konnect-env={}", policy.display())].into_iter().chain(more).collect(),
        env: Vec::new(),
        log: plane.run_dir().join("operator.log"),
    })?;
    say(&format!("$ weir operator --policy konnect-env={}", policy.display()));
    let told = async {
        tour(args, &cluster, &policy).await?;
        match &registry {
            Some(registry) => published::tour(args, &cluster, registry).await,
            None => Ok(()),
        }
    };
    let told = told.await;
    if let Err(error) = told {
        bail!("{error:#}\nthe operator's last words:\n{}", tail(&operator.log()));
    }
    if args.keep {
        heading("It stays: Ctrl-C ends it");
        println!("export KUBECONFIG={}", plane.kubeconfig().display());
        tokio::signal::ctrl_c().await?;
    }
    operator.stop(Duration::from_secs(10)).context("the operator did not stop")?;
    say("the operator gave its Lease back and stopped; the control plane goes with this process");
    Ok(())
}

async fn tour(args: &Args, cluster: &Cluster, policy: &Path) -> Result<()> {
    heading("What a user applies: the examples, and the client certificate that one of them names");
    cluster.certificate("konnect-client-tls").await?;
    let names = cluster.apply_all(&args.examples).await?;
    let begun = Instant::now();
    follow(cluster, &names).await?;
    say(&format!("all Ready {:.1} s after they were applied", begun.elapsed().as_secs_f64()));

    heading("Another policy takes the file's place: no restart, and only what it shapes rolls");
    let before = cluster.environment("edge").await?;
    std::fs::copy(&args.other, policy)?;
    let begun = Instant::now();
    let after = until("the Deployment has the other policy's environment", || async {
        let now = cluster.environment("edge").await?;
        Ok((now != before).then_some(now))
    })
    .await?;
    narrate::difference(&before, &after);
    until("the pods have rolled", || async { Ok(cluster.rolled("edge").await?.then_some(())) }).await?;
    say(&format!("swapped and rolled {:.1} s after the file changed", begun.elapsed().as_secs_f64()));

    heading("A mistake: an image below 3.0.0. Failure is narrow, and the object says what to do");
    cluster.image("internal", "kong:2.8").await?;
    let message = until("the DataPlane says so", || async {
        let condition = cluster.ready("internal").await?;
        Ok(condition.filter(|c| c.0 != "True").map(|c| c.1))
    })
    .await?;
    say(&format!("DataPlane internal: {message}"));
    cluster.image("internal", "kong/kong-gateway:3.11").await?;
    follow(cluster, &["internal".to_owned()]).await
}

/// Prints conditions as they change, until all are Ready.
async fn follow(cluster: &Cluster, names: &[String]) -> Result<()> {
    let mut shown: Vec<Option<(String, String)>> = vec![None; names.len()];
    let end = Instant::now() + LIMIT;
    loop {
        let mut ready = 0;
        for (name, last) in names.iter().zip(&mut shown) {
            let now = cluster.ready(name).await?;
            if now != *last {
                if let Some((status, message)) = &now {
                    say(&format!("DataPlane {name}: Ready={status} {message}"));
                }
                last.clone_from(&now);
            }
            ready += usize::from(now.is_some_and(|(status, _)| status == "True"));
        }
        if ready == names.len() {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("not Ready after {} s: {shown:?}", LIMIT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn until<T, F: Future<Output = Result<Option<T>>>>(what: &str, look: impl Fn() -> F) -> Result<T> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() > end {
            bail!("{what}: not after {} s", LIMIT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

/// The namespaces of operator and examples.
fn namespaces() -> [Value; 2] {
    [OPERATOR_NAMESPACE, EXAMPLES_NAMESPACE].map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}
