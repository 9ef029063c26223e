//! The API server's own checks of a DataPlane beyond the schema (CEL), with the sentence a user reads when one fails.
//!
//! The lists they walk have no upper bound, so every step is priced at some 240 000 entries against a limit of ten million: bodies stay
//! at a handful of comparisons and build no lists.

/// Kong has no built-in image to fall back to, so the container that runs it has to say which.
pub(super) const IMAGE: &str = "has(self.spec) && has(self.spec.deployment) && has(self.spec.deployment.podTemplateSpec) \
    && has(self.spec.deployment.podTemplateSpec.spec) \
    && self.spec.deployment.podTemplateSpec.spec.containers.exists(c, c.name == 'proxy' && has(c.image))";
pub(super) const IMAGE_MESSAGE: &str =
    "spec.deployment.podTemplateSpec.spec.containers needs a container with the name proxy and the image of Kong to run";

/// Only the first container is looked at, and only a literal value: what an operator for Kong always checked, no more.
pub(super) const DATABASE: &str = "!has(self.spec) || !has(self.spec.deployment) || !has(self.spec.deployment.podTemplateSpec) \
    || !has(self.spec.deployment.podTemplateSpec.spec) \
    || size(self.spec.deployment.podTemplateSpec.spec.containers) == 0 \
    || self.spec.deployment.podTemplateSpec.spec.containers[0].name != 'proxy' \
    || !has(self.spec.deployment.podTemplateSpec.spec.containers[0].env) \
    || self.spec.deployment.podTemplateSpec.spec.containers[0].env.all(e, \
        e.name != 'KONG_DATABASE' || !has(e.value) || e.value == '' || e.value == 'off')";
pub(super) const DATABASE_MESSAGE: &str =
    "a DataPlane runs without a database: KONG_DATABASE on the container proxy has to be off, or absent";

/// Half-switched Services and a new spec at once would leave no state to return to.
pub(super) const FROZEN: &str = "!has(oldSelf.status) || !has(oldSelf.status.rollout) || !has(oldSelf.status.rollout.conditions) \
    || !oldSelf.status.rollout.conditions.exists(c, c.type == 'RolledOut' && c.reason == 'PromotionInProgress') \
    || self.spec == oldSelf.spec";
pub(super) const FROZEN_MESSAGE: &str = "the preview is being promoted right now; change spec once that is done";

/// An extension carries credentials, so naming one of another namespace would hand them over.
pub(super) const EXTENSION_NAMESPACE: &str =
    "!has(self.spec) || !has(self.spec.extensions) || self.spec.extensions.all(e, !has(e.__namespace__))";
pub(super) const EXTENSION_NAMESPACE_MESSAGE: &str =
    "an extension is read from the DataPlane's own namespace; remove namespace from spec.extensions";

/// Both groups pass because both are in use; which of them the running operator can apply is said in a condition.
pub(super) const EXTENSION_KIND: &str = "!has(self.extensions) || self.extensions.all(e, e.kind == 'KonnectExtension' \
    && (!has(e.group) || e.group == 'gateway-operator.konghq.com' || e.group == 'konnect.konghq.com'))";
pub(super) const EXTENSION_KIND_MESSAGE: &str =
    "a DataPlane takes one sort of extension: kind KonnectExtension of group gateway-operator.konghq.com or konnect.konghq.com";

/// A fixed number and an autoscaler would take turns overwriting each other.
pub(super) const REPLICAS: &str = "!has(self.replicas) || !has(self.scaling)";
pub(super) const REPLICAS_MESSAGE: &str = "set either replicas or scaling, not both";

/// A cluster-internal Service opens no port on the nodes. Without a type it is a load balancer, which does.
pub(super) const NODE_PORT: &str = "!has(self.type) || self.type != 'ClusterIP' || !has(self.ports) || self.ports.all(p, !has(p.nodePort))";
pub(super) const NODE_PORT_MESSAGE: &str = "nodePort needs a Service of type LoadBalancer or NodePort";

/// Traffic from outside never reaches a cluster-internal Service.
pub(super) const EXTERNAL_TRAFFIC: &str = "!has(self.type) || self.type != 'ClusterIP' || !has(self.externalTrafficPolicy)";
pub(super) const EXTERNAL_TRAFFIC_MESSAGE: &str = "externalTrafficPolicy needs a Service of type LoadBalancer or NodePort";

/// A disruption budget with both bounds is refused by Kubernetes, one with neither protects nothing.
pub(super) const BUDGET: &str = "has(self.minAvailable) != has(self.maxUnavailable)";
pub(super) const BUDGET_MESSAGE: &str = "set exactly one of minAvailable and maxUnavailable";
