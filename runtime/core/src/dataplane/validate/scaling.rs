//! Replicas, autoscaler, disruption budget.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use weir_api::dataplane::DataPlaneSpec;

use super::Report;
use crate::plan::HeldPart;

pub(crate) fn check(spec: &DataPlaneSpec, report: &mut Report) {
    if let Some(deployment) = &spec.deployment {
        if deployment.replicas.is_some_and(|r| r < 0) {
            report.problem(HeldPart::PodTemplate, "spec.deployment.replicas", "is below 0");
        }
        if let Some(scaling) = deployment.scaling.as_ref().and_then(|s| s.horizontal.as_ref()) {
            let least = scaling.min_replicas.unwrap_or(1);
            if scaling.max_replicas < 1 || least < 0 {
                report.problem(
                    HeldPart::Autoscaler,
                    "spec.deployment.scaling.horizontal",
                    "maxReplicas is at least 1, minReplicas at least 0",
                );
            } else if least > scaling.max_replicas {
                let message = format!("minReplicas {least} is above maxReplicas {}", scaling.max_replicas);
                report.problem(HeldPart::Autoscaler, "spec.deployment.scaling.horizontal.minReplicas", message);
            }
        }
    }
    let budget = spec.resources.as_ref().and_then(|r| r.pod_disruption_budget.as_ref()).and_then(|p| p.spec.as_ref());
    if let Some(budget) = budget {
        for (field, value) in [("minAvailable", &budget.min_available), ("maxUnavailable", &budget.max_unavailable)] {
            if value.as_ref().is_some_and(|v| !is_count(v)) {
                let path = format!("spec.resources.podDisruptionBudget.spec.{field}");
                report.problem(HeldPart::DisruptionBudget, path, "is a number from 0 or a percentage such as `50%`");
            }
        }
        if budget.unhealthy_pod_eviction_policy.as_deref().is_some_and(|p| !matches!(p, "IfHealthyBudget" | "AlwaysAllow")) {
            let path = "spec.resources.podDisruptionBudget.spec.unhealthyPodEvictionPolicy";
            report.problem(HeldPart::DisruptionBudget, path, "is IfHealthyBudget or AlwaysAllow");
        }
    }
}

fn is_count(value: &IntOrString) -> bool {
    match value {
        IntOrString::Int(number) => *number >= 0,
        IntOrString::String(text) => {
            text.strip_suffix('%').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && n.parse::<u32>().is_ok_and(|n| n <= 100))
        }
    }
}
