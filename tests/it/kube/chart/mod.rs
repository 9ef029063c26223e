//! The chart, with the real helm against a real API server that has nothing but what the chart brings.
//!
//! Pods are fake there (KWOK): what a hook's Job would run is run by the test, as the Job's own ServiceAccount.

mod conform;
mod helm;
mod life;
mod render;
mod rules;

use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use weir_testkit::{binaries, skipped};

use self::helm::Helm;
use super::{
    cluster::{self, Cluster, lock},
    install::Installation,
    labs::TURN,
    ns::Ns,
};

/// Namespace and name of the release.
const NAMESPACE: &str = "weir-system";
const RELEASE: &str = "weir";

pub(crate) fn tests() -> Vec<Trial> {
    [render::tests(), conform::tests(), life::tests(), rules::tests()].into_iter().flatten().collect()
}

/// The chart with helm, where this machine can have it.
fn tools(test: &str) -> Option<Helm> {
    if let Some(reason) = binaries::missing_chart_tools() {
        skipped(test, &reason).unwrap();
        return None;
    }
    Some(Helm::new())
}

/// A cluster for the chart, a helm that talks to it, and a namespace for gateways.
struct Bed {
    cluster: Arc<Cluster>,
    helm: Helm,
    installation: Installation,
    ns: Ns,
}

/// Makes a test with the chart's own control plane. They take turns with all tests that run operators of their own.
fn bed(name: &'static str, body: impl AsyncFnOnce(Bed) + Send + 'static) -> Trial {
    Trial::test(format!("kube chart {name}"), move || {
        let turn = lock(&TURN);
        let Some(helm) = tools(&format!("kube chart {name}")) else { return Ok(()) };
        let Ok(cluster) = cluster::chart(NAMESPACE, &["weir", "weir-crds", "weir-cleanup"]) else { return Ok(()) };
        cluster::runtime().block_on(async {
            let slug = format!("chart-{}", name.split([' ', ':']).next().unwrap());
            let logs = Arc::new(Mutex::new(Vec::new()));
            let ns = Ns::create(cluster.client.clone(), &slug, cluster.audit.clone(), logs).await;
            let helm = helm.with(&cluster.kubeconfig());
            let installation = Installation { namespace: NAMESPACE.to_owned() };
            body(Bed { cluster, helm, installation, ns: ns.clone() }).await;
            ns.clear().await;
        });
        drop(turn);
        Ok(())
    })
}
