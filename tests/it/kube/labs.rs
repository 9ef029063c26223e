//! Tests that run operators of their own. They take turns: two cores, and some of them stop the API server.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use libtest_mimic::Trial;

use super::{
    cluster::{self, Cluster, lock},
    install::{Installation, Running},
    ns::Ns,
};

/// Every such test, because its users have to be known when the API server starts.
pub(crate) const LABS: [&str; 72] = [
    "broken-ending",
    "broken-leaving",
    "broken-useless",
    "traces",
    "crds-status",
    "certs-ca",
    "certs-rsa",
    "certs-renewal",
    "faults-server",
    "faults-kill",
    "faults-writer",
    "faults-expired",
    "faults-away",
    "steady",
    "replicas-killed",
    "replicas-stopped",
    "adopt-takeover",
    "adopt-differs",
    "adopt-approved",
    "names-restart",
    "konnect-before",
    "konnect-after",
    "plugins-install",
    "plugins-full",
    "plugins-images",
    "plugins-upgrade",
    "plugins-undo",
    "plugins-approved",
    "plugins-held",
    "plugins-named",
    "plugins-uninstall",
    "plugins-borders",
    "plugins-secrets",
    "plugins-outage",
    "plugins-tags",
    "plugins-claims",
    "plugins-names",
    "plugins-merged",
    "plugins-lua",
    "plugins-kills",
    "plugins-spoilt",
    "plugins-ownerless",
    "plugins-records",
    "plugins-many",
    "policies-lies",
    "policies-secrets",
    "policies-authorities",
    "policies-spoilt",
    "policies-full",
    "policies-swap",
    "policies-tags",
    "policies-refused",
    "policies-manual",
    "policies-offline",
    "policies-kills",
    "policies-standby",
    "policies-breaker",
    "policies-selection",
    "policies-load",
    "policies-hostile",
    "policies-verified",
    "policies-list",
    "policies-own-secrets",
    "plugins-signed",
    "plugins-settings",
    "remote-found",
    "remote-secrets",
    "remote-pods",
    "remote-policy",
    "recordings",
    "remote-stack",
    "remote-quiet",
];

/// A namespace for objects, another for operators, and a control plane.
pub(crate) struct Lab {
    pub(crate) ns: Ns,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) installation: Installation,
}

impl Lab {
    /// Starts an operator that watches the test's namespace only, with the rights of `account` (`weir` or `weir-b`).
    pub(crate) fn operator(&self, account: &str, more: &[&str]) -> Running {
        let mut args = vec!["--watch-namespace", self.ns.name.as_str()];
        args.extend(more);
        let running = Running::start(&self.cluster, &self.installation, account, &args);
        lock(&self.ns.logs).push(running.log_file().to_owned());
        running
    }

    /// The operator's own namespace, as a place to look.
    pub(crate) fn system(&self) -> Ns {
        Ns { name: self.installation.namespace.clone(), ..self.ns.clone() }
    }
}

/// Tests that run operators of their own take turns.
pub(crate) static TURN: Mutex<()> = Mutex::new(());

/// Makes a test with a lab.
pub(crate) fn lab(name: &'static str, body: impl AsyncFnOnce(Lab) + Send + 'static) -> Trial {
    assert!(LABS.contains(&name), "{name} is missing in LABS");
    Trial::test(format!("kube {}", name.replace('-', " ")), move || {
        let turn = lock(&TURN);
        let Ok(cluster) = cluster::lab() else { return Ok(()) };
        cluster.mend();
        cluster::runtime().block_on(async {
            let logs: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
            let ns = Ns::create(cluster.client.clone(), name, cluster.audit.clone(), logs).await;
            let installation = Installation { namespace: format!("{name}-system") };
            installation.apply(&cluster.client).await;
            body(Lab { ns: ns.clone(), cluster: Arc::clone(&cluster), installation }).await;
            ns.clear().await;
        });
        drop(turn);
        Ok(())
    })
}

/// Makes a test that uses the operator of all.
pub(crate) fn shared(name: &'static str, body: impl AsyncFnOnce(Ns) + Send + 'static) -> Trial {
    Trial::test(format!("kube {name}"), move || {
        let Ok(cluster) = cluster::shared() else { return Ok(()) };
        cluster::runtime().block_on(async {
            let slug = name.to_lowercase().replace([' ', ':', ','], "-");
            let ns = Ns::create(cluster.client.clone(), &slug, cluster.audit.clone(), Arc::clone(&cluster.logs)).await;
            body(ns.clone()).await;
            ns.clear().await;
        });
        Ok(())
    })
}
