//! The command line of every component: all on loopback, and fast enough that a benchmark measures the operator and not them.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::files::{self, Files};
use crate::binaries::Binaries;
use crate::port::free_ports;

/// Every port of a control plane. What is not here is switched off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) api_server: u16,
    etcd: u16,
    etcd_peers: u16,
}

impl Ports {
    pub(super) fn choose() -> Result<Self> {
        let [api_server, etcd, etcd_peers] = free_ports()?;
        Ok(Self { api_server, etcd, etcd_peers })
    }

    pub(super) fn url(self) -> String {
        format!("https://127.0.0.1:{}", self.api_server)
    }

    fn etcd_url(self) -> String {
        format!("http://127.0.0.1:{}", self.etcd)
    }
}

/// Throughput limits of the clients in Kubernetes' own components, far above what a test asks for.
const QPS: [&str; 4] = ["--kube-api-qps", "500", "--kube-api-burst", "1000"];

pub(super) fn etcd(binaries: &Binaries, files: &Files, ports: Ports) -> Command {
    let peers = format!("http://127.0.0.1:{}", ports.etcd_peers);
    let mut command = Command::new(&binaries.etcd);
    command.args([path("--data-dir", &files.etcd_data())]);
    command.args(["--listen-client-urls", &ports.etcd_url(), "--advertise-client-urls", &ports.etcd_url()]);
    // Durable enough for a data directory that is thrown away, and it survives a killed API server.
    command.args(["--listen-peer-urls", &peers, "--unsafe-no-fsync"]);
    command
}

pub(super) fn api_server(binaries: &Binaries, files: &Files, ports: Ports) -> Command {
    let mut command = Command::new(&binaries.kube_apiserver);
    command.args(["--etcd-servers", &ports.etcd_url()]);
    // Two control planes that raced for a port must not write into each other's store before the loser notices.
    command.arg(format!("--etcd-prefix=/weir-{}-{}", std::process::id(), ports.api_server));
    command.args(["--bind-address", "127.0.0.1", "--secure-port", &ports.api_server.to_string()]);
    // A machine without a default route has no address to advertise, and loopback is none that Endpoints may have.
    command.args(["--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none"]);
    command.args([path("--cert-dir", &files.certs())]);
    command.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
    command.args([
        path("--service-account-key-file", &files.account_public_key()),
        path("--service-account-signing-key-file", &files.account_key()),
        path("--token-auth-file", &files.tokens()),
        path("--audit-policy-file", &files.audit_policy()),
        path("--audit-log-path", &files.audit_log()),
    ]);
    command.args(["--audit-log-mode", "blocking", "--audit-log-maxsize", "0"]);
    command.args(["--authorization-mode", "Node,RBAC", "--disable-admission-plugins", "ServiceAccount"]);
    // Thousands of Services of type LoadBalancer have more than 254 addresses and 2,768 node ports. Nothing listens on either.
    command.args(["--service-cluster-ip-range", "10.0.0.0/16", "--service-node-port-range", "10000-60000"]);
    command.args(["--max-requests-inflight", "2000", "--max-mutating-requests-inflight", "1000"]);
    command
}

pub(super) fn controller_manager(binaries: &Binaries, files: &Files, stock_limits: bool) -> Result<Command> {
    let mut command = Command::new(&binaries.kube_controller_manager);
    command.args([path("--kubeconfig", files.kubeconfig(files::CONTROLLER_MANAGER)?)]);
    command.args([path("--service-account-private-key-file", &files.account_key()), path("--root-ca-file", &files.certificate())]);
    command.args(["--leader-elect=false", "--secure-port=0"]);
    if stock_limits {
        return Ok(command);
    }
    command.args(QPS);
    for workers in ["deployment", "replicaset", "endpoint", "service-endpoint", "gc", "namespace"] {
        command.arg(format!("--concurrent-{workers}-syncs=50"));
    }
    Ok(command)
}

pub(super) fn scheduler(binaries: &Binaries, files: &Files, stock_limits: bool) -> Result<Command> {
    let mut command = Command::new(&binaries.kube_scheduler);
    command.args([path("--kubeconfig", files.kubeconfig(files::SCHEDULER)?)]);
    command.args(["--leader-elect=false", "--secure-port=0"]);
    if !stock_limits {
        command.args(QPS);
    }
    Ok(command)
}

pub(super) fn kwok(binaries: &Binaries, files: &Files) -> Result<Command> {
    let mut command = Command::new(&binaries.kwok);
    command.args([path("--kubeconfig", files.kubeconfig(files::KWOK)?), path("--config", &binaries.kwok_stages)]);
    // Without lease heartbeats a node is lost after 40 s, and its pods with it.
    command.args(["--manage-all-nodes", "--node-lease-duration-seconds", "40", "--cidr", "10.64.0.0/12"]);
    Ok(command)
}

fn path(flag: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push("=");
    argument.push(path);
    argument
}
