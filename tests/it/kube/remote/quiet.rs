//! A plugin that is as it was costs no write.

use std::time::Duration;

use super::{Lab, PLUGIN, Server, install, ready};
use crate::kube::{audit::lines, ns::CONVERGED};

/// Longer than a connection may be without a look at it.
const TIME: Duration = Duration::from_secs(45);

/// Probes go on; the Service, its events and everything else are left alone.
pub(super) async fn quiet(lab: Lab) {
    let system = lab.system();
    let server = Server::start("one", PLUGIN, "1").await;
    install(&system, "one", PLUGIN, &server).await;
    let operator = lab.operator("weir", &[]);
    operator.wait_ready().await;
    ready(&system, "one", CONVERGED).await;
    // The Lease is renewed in this namespace, so it never settles: what becoming ready makes it write, it has written by then.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let audit = system.audit().await;
    tokio::time::sleep(TIME).await;
    let user = lab.installation.user_name("weir");
    let ours: Vec<_> = audit.asked().await.into_iter().filter(|asked| asked.user == user && asked.is_write()).collect();
    let (leases, writes): (Vec<_>, Vec<_>) = ours.into_iter().partition(|asked| asked.resource == "leases");
    assert!(writes.is_empty(), "{} writes in {TIME:?}:\n{}", writes.len(), lines(&writes));
    assert!(leases.len() > 5, "the Lease is renewed: {} requests", leases.len());
    ready(&system, "one", CONVERGED).await;
}
