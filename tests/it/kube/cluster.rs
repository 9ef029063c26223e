//! The control planes tests share: one with an operator that watches everything, one (the lab) where each test runs operators of its own.

use std::{
    io::Write,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::Client;
use weir_testkit::{ControlPlane, Options, User};

use super::{
    api,
    install::{self, Installation, Running},
    labs::LABS,
};

/// What keeps one control plane alive.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) audit: PathBuf,
    pub(crate) run_dir: PathBuf,
    /// Logs of the operator that watches everything; none in the lab.
    pub(crate) logs: Arc<Mutex<Vec<PathBuf>>>,
    /// Whether its API server was killed and is not back.
    killed: AtomicBool,
    plane: Mutex<Option<ControlPlane>>,
    operator: Mutex<Option<Running>>,
}

type Started = Result<Arc<Cluster>, String>;

static SHARED: OnceLock<Started> = OnceLock::new();
static LAB: OnceLock<Started> = OnceLock::new();
static CHART: OnceLock<Started> = OnceLock::new();

/// One runtime for every test and everything that runs beside them.
pub(crate) fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap())
}

/// The control plane whose operator watches all namespaces.
pub(crate) fn shared() -> Started {
    SHARED
        .get_or_init(|| {
            let installation = Installation { namespace: "weir-system".into() };
            let cluster = start("shared", vec![installation.user("weir")])?;
            runtime().block_on(installation.apply(&cluster.client));
            let running = Running::start(&cluster, &installation, "weir", &[]);
            lock(&cluster.logs).push(running.log_file().to_owned());
            runtime().block_on(running.wait_ready());
            *lock(&cluster.operator) = Some(running);
            Ok(cluster)
        })
        .clone()
}

/// The control plane without an operator.
pub(crate) fn lab() -> Started {
    LAB.get_or_init(|| {
        let users = LABS.iter().flat_map(|name| {
            let installation = Installation { namespace: format!("{name}-system") };
            [installation.user("weir"), installation.user("weir-b")]
        });
        start("lab", users.collect())
    })
    .clone()
}

/// The control plane for the chart: nothing is in it that the chart does not bring. `accounts` are those of its namespace.
pub(crate) fn chart(namespace: &str, accounts: &[&str]) -> Started {
    CHART
        .get_or_init(|| {
            let installation = Installation { namespace: namespace.to_owned() };
            bare("chart", accounts.iter().map(|account| installation.user(account)).collect())
        })
        .clone()
}

/// Starts a control plane with our CRDs; says why it cannot run here.
fn start(name: &str, users: Vec<User>) -> Started {
    let cluster = bare(name, users)?;
    let client = &cluster.client;
    runtime().spawn(weir_testkit::give_addresses(client.clone()));
    runtime().block_on(async {
        for crd in weir_api::crds::all() {
            let crd = install::typed(&crd, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
            api::apply(client, "", &crd, "test", false).await.map_err(String::from).unwrap();
        }
        install::established(client).await;
    });
    Ok(cluster)
}

/// Starts a control plane as Kubernetes makes it; says why it cannot run here.
fn bare(name: &str, users: Vec<User>) -> Started {
    let mut say = |line: &str| {
        let _ = writeln!(std::io::stderr(), "     {name} control plane: {line}");
    };
    if let Err(error) = weir_testkit::binaries::ensure(&mut say) {
        let _ = weir_testkit::skipped("tests against a real API server", &format!("{error:#}").replace('\n', " "));
        return Err(format!("{error:#}"));
    }
    // The kube client spawns its buffer on the runtime of the moment.
    let entered = runtime().enter();
    let plane = ControlPlane::start(&Options { users, ..Options::default() }, &mut say)
        .unwrap_or_else(|error| panic!("the {name} control plane does not start: {error:#}"));
    let client = plane.client().unwrap();
    drop(entered);
    let cluster = Cluster {
        client,
        audit: plane.audit_log().to_owned(),
        run_dir: plane.run_dir().to_owned(),
        logs: Arc::default(),
        killed: AtomicBool::new(false),
        plane: Mutex::new(Some(plane)),
        operator: Mutex::new(None),
    };
    Ok(Arc::new(cluster))
}

impl Cluster {
    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        lock(&self.plane).as_ref().unwrap().kubeconfig().to_owned()
    }

    /// A kubeconfig of one of the users given at the start.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        lock(&self.plane).as_ref().unwrap().kubeconfig_of(user).unwrap()
    }

    /// SIGKILL to the API server, nothing else.
    pub(crate) fn kill_api_server(&self) {
        self.killed.store(true, Ordering::SeqCst);
        lock(&self.plane).as_mut().unwrap().kill_api_server().unwrap();
    }

    /// The same API server again.
    pub(crate) fn start_api_server(&self) {
        lock(&self.plane).as_mut().unwrap().start_api_server().unwrap();
        self.killed.store(false, Ordering::SeqCst);
    }

    /// What a test that failed has killed: the others need it.
    pub(crate) fn mend(&self) {
        if self.killed.load(Ordering::SeqCst) {
            self.start_api_server();
        }
    }

    /// What the operator that watches everything serves for scrapers and probes.
    pub(crate) fn with_operator<T>(&self, ask: impl FnOnce(&Running) -> T) -> T {
        ask(lock(&self.operator).as_ref().unwrap())
    }
}

/// Stops whatever was started. Statics are never dropped, so the harness calls this before it exits.
pub(crate) fn tear_down() {
    for cluster in [&SHARED, &LAB, &CHART].into_iter().filter_map(|cell| cell.get()?.as_ref().ok()) {
        drop(lock(&cluster.operator).take());
        drop(lock(&cluster.plane).take());
    }
}

/// A test that failed while it held a lock has said so already.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
