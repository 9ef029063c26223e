//! What a cloud would do for Services of type LoadBalancer.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

const PAUSE: Duration = Duration::from_millis(200);

/// Gives every Service of type LoadBalancer an address of 203.0.113.0/24, and takes it away when the type changes. Addresses are
/// used again after 254 Services. Runs until it is dropped, through restarts of the API server.
pub async fn give_addresses(client: Client) {
    let mut next = 0_u32;
    loop {
        // Whatever broke, a list later says what there is to do.
        let _ = follow(&client, &mut next).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(client: &Client, next: &mut u32) -> Result<(), kube::Error> {
    let services: Api<Service> = Api::all(client.clone());
    let list = services.list(&ListParams::default()).await?;
    for service in &list.items {
        settle(client, service, next).await?;
    }
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = std::pin::pin!(services.watch(&WatchParams::default(), &version).await?);
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(service) | WatchEvent::Modified(service) => settle(client, &service, next).await?,
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
    }
    Ok(())
}

async fn settle(client: &Client, service: &Service, next: &mut u32) -> Result<(), kube::Error> {
    let (Some(patch), Some(name)) = (change(service, *next), &service.metadata.name) else { return Ok(()) };
    *next = next.wrapping_add(1);
    let namespace = service.metadata.namespace.as_deref().unwrap_or("default");
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    match services.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        // Deleted or changed in between: another event tells of it.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 || status.code == 422 => Ok(()),
        Err(error) => Err(error),
    }
}

/// The change of the status that a Service needs.
fn change(service: &Service, next: u32) -> Option<Value> {
    let balanced = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let has = status.and_then(|status| status.ingress.as_ref()).is_some_and(|ingress| !ingress.is_empty());
    match (balanced, has) {
        (true, false) => {
            let ingress = json!([{ "ip": format!("203.0.113.{}", next % 254 + 1), "ipMode": "VIP" }]);
            Some(json!({ "status": { "loadBalancer": { "ingress": ingress } } }))
        }
        (false, true) => Some(json!({ "status": { "loadBalancer": { "ingress": null } } })),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str, ingress: &[&str]) -> Service {
        let ingress: Vec<Value> = ingress.iter().map(|ip| json!({ "ip": ip })).collect();
        serde_json::from_value(json!({ "metadata": {}, "spec": { "type": kind }, "status": { "loadBalancer": { "ingress": ingress } } }))
            .unwrap()
    }

    #[test]
    fn only_a_load_balancer_has_an_address() {
        let patch = change(&service("LoadBalancer", &[]), 254).unwrap();
        assert_eq!(patch["status"]["loadBalancer"]["ingress"][0]["ip"], "203.0.113.1");
        assert_eq!(change(&service("LoadBalancer", &["203.0.113.9"]), 0), None);
        assert_eq!(change(&service("ClusterIP", &[]), 0), None);
        assert!(change(&service("ClusterIP", &["203.0.113.9"]), 0).unwrap()["status"]["loadBalancer"]["ingress"].is_null());
    }
}
