//! The admin Service: headless, so that every pod is configured (facts/kong-operator.md 1.3.1).

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use weir_api::keys;

use super::{labels, meta, service_selector};
use crate::dataplane::validate::Validated;

/// Port of Kong's admin API.
pub const ADMIN_PORT: i32 = 8444;

/// Builds the Service.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String) -> Service {
    let labels = labels(dp, &[(keys::DATAPLANE_SERVICE_TYPE, "admin"), (keys::DATAPLANE_SERVICE_STATE, "live")]);
    Service {
        metadata: meta(dp, name, labels),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".into()),
            cluster_ip: Some("None".into()),
            publish_not_ready_addresses: Some(true),
            selector: Some(service_selector(dp)),
            ports: Some(vec![ServicePort {
                name: Some("admin".into()),
                port: ADMIN_PORT,
                protocol: Some("TCP".into()),
                target_port: Some(IntOrString::Int(ADMIN_PORT)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
