//! Where a gateway is reached: what the ingress Service says.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use weir_api::dataplane::Address;

pub(super) fn is_load_balancer(service: &Service) -> bool {
    service.spec.as_ref().and_then(|s| s.type_.as_deref()) == Some("LoadBalancer")
}

pub(super) fn ingress(service: &Service) -> impl Iterator<Item = &LoadBalancerIngress> {
    service.status.as_ref().and_then(|s| s.load_balancer.as_ref()).and_then(|l| l.ingress.as_ref()).into_iter().flatten()
}

/// Addresses of the ingress Service (facts/kong-operator.md 1.7).
pub(super) fn addresses(service: &Service) -> Vec<Address> {
    let internal = service
        .metadata
        .annotations
        .iter()
        .flatten()
        .any(|(k, v)| k == "service.beta.kubernetes.io/aws-load-balancer-scheme" && v == "internal");
    let address =
        |type_: &str, value: &str, source: &str| Address { type_: Some(type_.into()), value: value.into(), source_type: source.into() };
    let mut all = Vec::new();
    for entry in ingress(service) {
        if let Some(ip) = entry.ip.as_deref().filter(|ip| !ip.is_empty()) {
            all.push(address("IPAddress", ip, if is_private(ip) { "PrivateLoadBalancer" } else { "PublicLoadBalancer" }));
        }
        if let Some(host) = entry.hostname.as_deref().filter(|h| !h.is_empty()) {
            all.push(address("Hostname", host, if internal { "PrivateLoadBalancer" } else { "PublicLoadBalancer" }));
        }
    }
    let ips = service.spec.as_ref().and_then(|s| s.cluster_ips.clone()).unwrap_or_default();
    all.extend(ips.iter().filter(|ip| !ip.is_empty() && *ip != "None").map(|ip| address("IPAddress", ip, "PrivateIP")));
    all
}

fn is_private(ip: &str) -> bool {
    match ip.parse::<core::net::IpAddr>() {
        Ok(core::net::IpAddr::V4(v4)) => v4.is_private(),
        Ok(core::net::IpAddr::V6(v6)) => v6.is_unique_local(),
        Err(_) => false,
    }
}
