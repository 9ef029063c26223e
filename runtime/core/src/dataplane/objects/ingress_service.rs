//! The ingress Service: where traffic enters (facts/kong-operator.md 1.3.2).

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use weir_api::{
    dataplane::{IngressService, ServiceType, TrafficDistribution, TrafficPolicy},
    keys,
};

use super::{labels, meta, service_selector};
use crate::{
    dataplane::validate::{IngressPort, Validated, is_reserved},
    policy::Pairs,
};

/// The user's block, where there is one.
#[must_use]
pub fn options<'a>(dp: &'a Validated<'_>) -> Option<&'a IngressService> {
    dp.spec().network.as_ref()?.services.as_ref()?.ingress.as_ref()
}

/// Builds the Service.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String) -> Service {
    let options = options(dp);
    let mut all = unreserved(options.and_then(|o| o.labels.as_ref()));
    all.extend(labels(dp, &[(keys::DATAPLANE_SERVICE_TYPE, "ingress"), (keys::DATAPLANE_SERVICE_STATE, "live")]));
    let mut metadata = meta(dp, name, all);
    let annotations = unreserved(options.and_then(|o| o.annotations.as_ref()));
    metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(options.and_then(|o| o.type_).unwrap_or(ServiceType::LoadBalancer).as_str().into()),
            selector: Some(service_selector(dp)),
            ports: Some(dp.ports.iter().map(port).collect()),
            external_traffic_policy: options.and_then(|o| o.external_traffic_policy).map(|p: TrafficPolicy| p.as_str().into()),
            internal_traffic_policy: options.and_then(|o| o.internal_traffic_policy).map(|p: TrafficPolicy| p.as_str().into()),
            traffic_distribution: options.and_then(|o| o.traffic_distribution).map(|d: TrafficDistribution| d.as_str().into()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn unreserved(map: Option<&Pairs>) -> Pairs {
    map.into_iter().flatten().filter(|(key, _)| !is_reserved(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn port(port: &IngressPort) -> ServicePort {
    ServicePort {
        name: port.name.clone(),
        port: port.port,
        protocol: Some(port.protocol.as_str().into()),
        target_port: Some(port.target.clone()),
        node_port: port.node_port.filter(|p| *p != 0),
        app_protocol: None,
    }
}
