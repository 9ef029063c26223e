//! Label values. Every one is a closed enum, so the number of series is known before the operator runs.

use std::{error::Error as StdError, io};

use prometheus_client::encoding::EncodeLabelValue;

/// A kind the operator reconciles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum Kind {
    /// gateway-operator.konghq.com DataPlane.
    DataPlane,
    /// gateway-operator.konghq.com KonnectExtension.
    KonnectExtension,
    /// gateway-operator.konghq.com KongPluginInstallation.
    KongPluginInstallation,
    /// weir.dev ReconcilePolicy.
    ReconcilePolicy,
    /// v1 Services that are remote plugins; a pass is over all of them.
    RemotePlugin,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::DataPlane, Self::KonnectExtension, Self::KongPluginInstallation, Self::ReconcilePolicy, Self::RemotePlugin];
}

/// How one pass over an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum Outcome {
    /// Everything wanted is there.
    Done,
    /// A condition on the object says what it waits for.
    Held,
    /// A request failed; the pass is tried again.
    Failed,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Done, Self::Held, Self::Failed];
}

/// Why a request to the API server failed, as far as an operator of the operator has to tell cases apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum ErrorReason {
    /// Another writer was faster, or the name is taken.
    Conflict,
    /// RBAC, or credentials that are not accepted.
    Forbidden,
    /// The API server or an admission webhook refuses the object.
    Invalid,
    /// The object, its namespace or its kind is not there.
    NotFound,
    /// No answer in time.
    Timeout,
    /// No connection, or a server that is not well.
    Unavailable,
    /// The API server asks for patience.
    Throttled,
    /// TLS does not come about.
    Certificate,
    /// Anything else; the log has the text.
    Other,
}

impl ErrorReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Conflict,
        Self::Forbidden,
        Self::Invalid,
        Self::NotFound,
        Self::Timeout,
        Self::Unavailable,
        Self::Throttled,
        Self::Certificate,
        Self::Other,
    ];

    /// The reason of a client error.
    #[must_use]
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_code(status.code),
            kube::Error::HyperError(error) => Self::of_connection(error),
            kube::Error::Service(error) => Self::of_connection(error.as_ref()),
            kube::Error::ReadEvents(error) => Self::of_connection(error),
            kube::Error::RustlsTls(_) | kube::Error::TlsRequired => Self::Certificate,
            kube::Error::Auth(_) => Self::Forbidden,
            kube::Error::ProxyProtocolUnsupported { .. }
            | kube::Error::ProxyProtocolDisabled { .. }
            | kube::Error::FromUtf8(_)
            | kube::Error::LinesCodecMaxLineLengthExceeded
            | kube::Error::HttpError(_)
            | kube::Error::SerdeError(_)
            | kube::Error::BuildRequest(_)
            | kube::Error::InferConfig(_)
            | kube::Error::Discovery(_)
            | kube::Error::InferKubeconfig(_) => Self::Other,
        }
    }

    fn of_code(code: u16) -> Self {
        match code {
            409 => Self::Conflict,
            401 | 403 => Self::Forbidden,
            400 | 405 | 406 | 413 | 415 | 422 => Self::Invalid,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            429 => Self::Throttled,
            500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// The cause is somewhere down the chain: client, connector, TLS, socket.
    fn of_connection(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.downcast_ref::<rustls::Error>().is_some() {
                return Self::Certificate;
            }
            let Some(io) = error.downcast_ref::<io::Error>() else {
                next = error.source();
                continue;
            };
            if io.kind() == io::ErrorKind::TimedOut {
                return Self::Timeout;
            }
            // An io::Error's source skips the error it wraps.
            next = match io.get_ref() {
                Some(inner) => Some(inner),
                None => None,
            };
        }
        Self::Unavailable
    }
}

/// A kind of object the operator watches or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum ObjectKind {
    /// gateway-operator.konghq.com DataPlane.
    DataPlane,
    /// gateway-operator.konghq.com KonnectExtension.
    KonnectExtension,
    /// konnect.konghq.com KonnectExtension, which is read only.
    KonnectApiExtension,
    /// apps/v1 Deployment.
    Deployment,
    /// apps/v1 ReplicaSet.
    ReplicaSet,
    /// v1 Service.
    Service,
    /// v1 Secret.
    Secret,
    /// autoscaling/v2 HorizontalPodAutoscaler.
    HorizontalPodAutoscaler,
    /// policy/v1 PodDisruptionBudget.
    PodDisruptionBudget,
    /// cert-manager.io/v1 Certificate.
    Certificate,
    /// v1 Namespace.
    Namespace,
    /// events.k8s.io/v1 Event.
    Event,
    /// coordination.k8s.io/v1 Lease.
    Lease,
    /// v1 ConfigMap.
    ConfigMap,
    /// gateway-operator.konghq.com KongPluginInstallation.
    KongPluginInstallation,
    /// gateway.networking.k8s.io ReferenceGrant.
    ReferenceGrant,
    /// weir.dev ReconcilePolicy.
    ReconcilePolicy,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
}

impl ObjectKind {
    /// The Kubernetes kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DataPlane => "DataPlane",
            Self::KonnectExtension | Self::KonnectApiExtension => "KonnectExtension",
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::Service => "Service",
            Self::Secret => "Secret",
            Self::HorizontalPodAutoscaler => "HorizontalPodAutoscaler",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Certificate => "Certificate",
            Self::Namespace => "Namespace",
            Self::Event => "Event",
            Self::Lease => "Lease",
            Self::ConfigMap => "ConfigMap",
            Self::KongPluginInstallation => "KongPluginInstallation",
            Self::ReferenceGrant => "ReferenceGrant",
            Self::ReconcilePolicy => "ReconcilePolicy",
            Self::EndpointSlice => "EndpointSlice",
        }
    }
}

/// How something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum Verb {
    /// Server-side apply.
    Apply,
    /// Create.
    Create,
    /// Delete.
    Delete,
    /// Any other patch of an object.
    Patch,
    /// Patch of a status.
    PatchStatus,
}
