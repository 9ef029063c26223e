//! Where a plugin is dialled: at its ready pods, so that one that is not ready is not asked and a pod that went is noticed.

use core::net::IpAddr;
use std::collections::BTreeSet;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use super::decide::Endpoints;

/// Most pods of one plugin that are dialled.
const MAX_PODS: usize = 64;

/// The port of the slices that belongs to a port of the Service.
enum Port<'a> {
    /// The one of this name.
    Named(Option<&'a str>),
    /// The same number: nothing stands between a headless Service and its pods.
    Same,
}

/// Where the port of a Service is served.
pub(super) fn endpoints(service: &Service, port: u16, slices: Option<&[EndpointSlice]>) -> Endpoints {
    let spec = service.spec.as_ref();
    let external = spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName");
    let Some(slices) = slices.filter(|_| !external) else { return Endpoints::Dns };
    let listed = spec.and_then(|spec| spec.ports.iter().flatten().find(|p| p.port == i32::from(port)));
    let port = (listed.map_or(Port::Same, |listed| Port::Named(listed.name.as_deref())), port);
    let mut pods: BTreeSet<(IpAddr, u16)> = slices.iter().flat_map(|slice| ready(slice, &port)).collect();
    // A pod of both families stands in two slices.
    if pods.iter().any(|(address, _)| address.is_ipv4()) {
        pods.retain(|(address, _)| address.is_ipv4());
    }
    Endpoints::Pods(pods.into_iter().take(MAX_PODS).collect())
}

fn ready<'a>(slice: &'a EndpointSlice, (named, port): &(Port<'a>, u16)) -> Vec<(IpAddr, u16)> {
    let target = match named {
        Port::Same => Some(*port),
        Port::Named(name) => {
            let name = name.unwrap_or_default();
            let found = slice.ports.iter().flatten().find(|p| p.name.as_deref().unwrap_or_default() == name);
            found.and_then(|p| p.port).and_then(|p| u16::try_from(p).ok())
        }
    };
    let Some(target) = target else { return Vec::new() };
    // Left out means ready.
    let up = slice.endpoints.iter().flatten().filter(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true));
    up.filter_map(|e| e.addresses.first()?.parse().ok()).map(|address| (address, target)).collect()
}
