//! Nodes that exist only for the scheduler; KWOK plays their kubelets.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// Creates `count` nodes with room for everything a test may want.
pub(super) async fn create(client: &Client, count: usize) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    for index in 0..count {
        let name = format!("kwok-{index}");
        let room = json!({ "cpu": "100k", "memory": "100Ti", "ephemeral-storage": "100Ti", "pods": "1M" });
        let node = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "type": "kwok",
                },
                "annotations": { "kwok.x-k8s.io/node": "fake" },
            },
            "status": { "allocatable": room, "capacity": room },
        }))?;
        api.create(&PostParams::default(), &node).await.with_context(|| format!("cannot create node {name}"))?;
    }
    Ok(())
}

/// An error that names a node on which no pod would start yet.
pub(super) async fn ready(client: &Client, count: usize) -> Result<()> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.context("cannot list nodes")?;
    let unready = nodes.iter().find(|node| !is_ready(node));
    match unready {
        Some(node) => bail!("node {} is not ready", node.metadata.name.as_deref().unwrap_or("?")),
        None if nodes.items.len() < count => bail!("{} of {count} nodes are there", nodes.items.len()),
        None => Ok(()),
    }
}

/// A node begins with a taint that the controller manager takes away after the node got ready.
fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.is_empty() && conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tainted_node_is_not_ready() {
        let conditions = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let node = |spec| serde_json::from_value::<Node>(json!({ "metadata": {}, "spec": spec, "status": conditions })).unwrap();
        assert!(is_ready(&node(json!({}))));
        assert!(!is_ready(&node(json!({ "taints": [{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }] }))));
        assert!(!is_ready(&Node::default()));
    }
}
