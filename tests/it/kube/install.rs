//! Operators under test: this very binary as `weir operator`, with the rights of its ServiceAccount and no others.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_testkit::{Operator, OperatorOptions, User, free_port};

use super::{
    api::{self, CRD},
    cluster::Cluster,
    shape::condition,
};

/// Set for a child process: this binary is `weir`. In the environment, so that no word on the command line can be taken for it.
pub(crate) const AS_WEIR: &str = "WEIR_IT_AS_WEIR";

/// What `helm install` would leave in the cluster, besides the Deployment of the operator.
pub(crate) struct Installation {
    /// Namespace of the operator.
    pub(crate) namespace: String,
}

impl Installation {
    /// The user that a ServiceAccount of the installation is.
    pub(crate) fn user(&self, account: &str) -> User {
        let groups = ["system:serviceaccounts", "system:authenticated"].map(String::from);
        let mut groups = Vec::from(groups);
        groups.push(format!("system:serviceaccounts:{}", self.namespace));
        User { name: self.user_name(account), groups }
    }

    /// Its name.
    pub(crate) fn user_name(&self, account: &str) -> String {
        format!("system:serviceaccount:{}:{account}", self.namespace)
    }

    /// The namespace and the generated manifests. A second account gets the same rights, so that the audit log tells two replicas apart.
    pub(crate) async fn apply(&self, client: &Client) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let install = weir_api::rbac::Install { namespace: self.namespace.clone(), ..weir_api::rbac::Install::default() };
        for mut manifest in std::iter::once(namespace).chain(weir_api::rbac::manifests(&install)) {
            if let Some(subjects) = manifest.get_mut("subjects").and_then(Value::as_array_mut) {
                let mut second = subjects[0].clone();
                second["name"] = "weir-b".into();
                subjects.push(second);
            }
            let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            api::apply(client, &namespace, &manifest, "test", true)
                .await
                .map_err(String::from)
                .unwrap_or_else(|error| panic!("{error}\n{manifest:#}"));
        }
    }
}

/// A running `weir operator`, and what a kubelet does for it: one that ends because it lost its Lease is started again. On a busy machine
/// the short Leases of tests are lost now and then, and no test is about that.
pub(crate) struct Running {
    pod: Arc<Mutex<Pod>>,
    options: OperatorOptions,
    metrics: u16,
    probes: u16,
}

struct Pod {
    operator: Operator,
    /// Ended by the test, which is the only one that may start it again.
    ended: bool,
    restarts: u32,
}

/// What an operator says last when it lost its Lease. Any other end is a fault and stays.
const LEADERSHIP_LOST: &str = "weir: leadership was lost";

/// Until the pod is dropped.
fn kubelet(pod: &Weak<Mutex<Pod>>, options: &OperatorOptions) {
    while let Some(pod) = pod.upgrade() {
        let mut pod = pod.lock().unwrap();
        if !pod.ended && !pod.operator.is_running() && pod.operator.log().lines().last().is_some_and(|l| l.starts_with(LEADERSHIP_LOST)) {
            pod.operator = Operator::start(options).unwrap();
            pod.restarts += 1;
        }
        drop(pod);
        std::thread::sleep(Duration::from_millis(200));
    }
}

impl Running {
    /// Starts it as a ServiceAccount of an installation.
    pub(crate) fn start(cluster: &Cluster, installation: &Installation, account: &str, more: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let log = cluster.run_dir.join(format!("operator-{}.log", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let (metrics, probes) = (free_port().unwrap(), free_port().unwrap());
        let cache = more.iter().position(|arg| *arg == "--cache-dir").map_or_else(
            || vec!["--cache-dir".to_owned(), cluster.run_dir.join("cache").display().to_string()],
            // Its own one is among the others.
            |_| Vec::new(),
        );
        let mut args: Vec<String> = [
            ("--namespace", installation.namespace.clone()),
            ("--metrics-bind-address", format!("127.0.0.1:{metrics}")),
            ("--health-probe-bind-address", format!("127.0.0.1:{probes}")),
            ("--log-format", "json".into()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect();
        args.extend(cache);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        let options = OperatorOptions {
            // An optimised one, where somebody wants its figures.
            weir: std::env::var_os("WEIR_IT_OPERATOR").map_or_else(|| std::env::current_exe().unwrap(), PathBuf::from),
            kubeconfig: cluster.kubeconfig_of(&installation.user_name(account)),
            args,
            env: vec![(AS_WEIR.into(), "1".into())],
            log,
        };
        let pod = Arc::new(Mutex::new(Pod { operator: Operator::start(&options).unwrap(), ended: false, restarts: 0 }));
        let (watched, again) = (Arc::downgrade(&pod), options.clone());
        std::thread::spawn(move || kubelet(&watched, &again));
        Self { pod, options, metrics, probes }
    }

    fn pod(&self) -> MutexGuard<'_, Pod> {
        self.pod.lock().unwrap()
    }

    /// SIGKILL, and the same again.
    pub(crate) fn kill_and_restart(&mut self) {
        let mut pod = self.pod();
        pod.operator.kill();
        pod.operator = Operator::start(&self.options).unwrap();
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut pod = self.pod();
        pod.ended = true;
        pod.operator.kill();
    }

    /// SIGTERM.
    pub(crate) fn stop(&mut self, limit: Duration) -> ExitStatus {
        let mut pod = self.pod();
        pod.ended = true;
        pod.operator.stop(limit).unwrap()
    }

    /// Where it logs to.
    pub(crate) fn log_file(&self) -> &Path {
        &self.options.log
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        self.pod().operator.log()
    }

    /// An answer of the probes' server.
    pub(crate) fn probe(&self, path: &str) -> impl Future<Output = Result<(u16, String), String>> + use<> {
        get(self.probes, path.to_owned())
    }

    /// Where a scraper asks.
    pub(crate) fn metrics_url(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.metrics)
    }

    /// What a scraper gets.
    pub(crate) fn metrics(&self) -> impl Future<Output = Metrics> + use<> {
        let answer = get(self.metrics, "/metrics".into());
        async {
            let (code, body) = answer.await.unwrap();
            assert_eq!(code, 200, "{body}");
            Metrics(body)
        }
    }

    /// Waits until it leads.
    pub(crate) async fn wait_leading(&self) {
        let start = Instant::now();
        while self.probe("/readyz").await.is_err() || self.metrics().await.sum("weir_leader", &[]) < 0.5 {
            assert!(start.elapsed() < Duration::from_secs(40), "the operator does not lead\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// SIGTERM, which gives the Lease away, and the same again.
    pub(crate) fn stop_and_restart(&mut self) {
        self.stop(Duration::from_secs(20));
        let mut pod = self.pod();
        pod.operator = Operator::start(&self.options).unwrap();
        pod.ended = false;
    }

    /// Whether the process lives and never ended by itself.
    pub(crate) fn is_running(&mut self) -> bool {
        let mut pod = self.pod();
        pod.restarts == 0 && pod.operator.is_running()
    }

    /// Waits until its caches are full.
    pub(crate) async fn wait_ready(&self) {
        let start = Instant::now();
        loop {
            let answer = self.probe("/readyz").await;
            if answer.as_ref().is_ok_and(|(code, _)| *code == 200) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "the operator does not get ready: {answer:?}\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A scrape.
pub(crate) struct Metrics(pub(crate) String);

impl Metrics {
    /// Sum over the series of a family that have all these labels; 0 without any.
    pub(crate) fn sum(&self, family: &str, labels: &[(&str, &str)]) -> f64 {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let wanted: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        lines
            .filter(|line| line.split(['{', ' ']).next() == Some(family) && wanted.iter().all(|label| line.contains(label)))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Names of families.
    pub(crate) fn families(&self) -> Vec<&str> {
        self.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
    }
}

/// HTTP/1.1 in the few words a probe needs.
async fn get(port: u16, path: String) -> Result<(u16, String), String> {
    let answer = async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok::<_, std::io::Error>(text)
    };
    let text = tokio::time::timeout(Duration::from_secs(5), answer).await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("no HTTP answer")?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status")?;
    Ok((code, body.to_owned()))
}

/// A typed object as a manifest.
pub(crate) fn typed(object: &impl Serialize, api_version: &str, kind: &str) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// Waits until every CRD of ours is served.
pub(crate) async fn established(client: &Client) {
    let start = Instant::now();
    for crd in weir_api::crds::all() {
        let name = crd.metadata.name.unwrap();
        loop {
            let object = api::find(client, CRD, "", &name).await.map_err(String::from).unwrap().unwrap();
            if condition(&object, "Established").is_some_and(|c| c["status"] == "True") {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{name} is not served: {:#}", object["status"]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// For children that are no operator: the binary as `weir` with other words.
pub(crate) fn weir(args: &[&str]) -> std::process::Output {
    let exe: PathBuf = std::env::current_exe().unwrap();
    std::process::Command::new(exe).args(args).env(AS_WEIR, "1").output().unwrap()
}
