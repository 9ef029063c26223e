//! Conditions: the type and the words that are used in it.
//!
//! Kong's vocabulary is open (its operator adds words between versions), so types and reasons are strings here, not an enum that
//! would refuse a status another operator wrote.

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// What a condition is about.
pub mod types {
    /// True once every child exists, enough pods are available and the ingress Service has an address where it needs one.
    pub const READY: &str = "Ready";
    /// Whether every entry of `spec.extensions` is of a sort this operator knows. Absent without extensions.
    pub const ACCEPTED_EXTENSIONS: &str = "AcceptedExtensions";
    /// Whether the Konnect extension shapes the pods. Absent without extensions.
    pub const KONNECT_EXTENSION_APPLIED: &str = "KonnectExtensionApplied";
    /// Whether every plugin in `spec.pluginsToInstall` is in the pods. Absent without plugins.
    pub const PLUGINS_INSTALLED: &str = "PluginsInstalled";
    /// Whether the answer of every slot was used.
    pub const POLICIES_APPLIED: &str = "PoliciesApplied";
    /// True while a change of the pods waits for its owner's word.
    pub const ROLLOUT_HELD: &str = "RolloutHeld";
    /// Whether an installation's artifact is fetched, packaged and can be used.
    pub const ACCEPTED: &str = "Accepted";
    /// True while the operator works towards what the spec asks for.
    pub const RECONCILING: &str = "Reconciling";
    /// True when what the spec asks for does not come about by itself.
    pub const STALLED: &str = "Stalled";
    /// Whether a revision of a policy answers.
    pub const ACTIVE: &str = "Active";
    /// True while a revision of a policy waits for its owner's word.
    pub const HELD: &str = "Held";
    /// Whether the reference of a policy leads to a component.
    pub const RESOLVED: &str = "Resolved";
    /// Whether a policy has the signatures that are wanted of it.
    pub const VERIFIED: &str = "Verified";
    /// Whether a component can answer its slot.
    pub const COMPATIBLE: &str = "Compatible";
    /// Whether a component takes its settings.
    pub const SETTINGS_VALID: &str = "SettingsValid";
    /// True once a policy in shadow mode said something else than the policy in force; it says about what.
    pub const SHADOW_DIFFERS: &str = "ShadowDiffers";
    /// Whether a DataPlane uses an extension, which then cannot go.
    pub const IN_USE: &str = "InUse";
    /// Whether a Service is the remote plugin of its name. On Services our types carry our domain: they have other owners.
    pub const PLUGIN_DISCOVERED: &str = "weir.dev/Discovered";
    /// Whether what a Service says about its plugin, and the Secrets it names, can be used.
    pub const PLUGIN_CONFIGURED: &str = "weir.dev/Configured";
    /// Whether a remote plugin answers over a connection that both sides trust.
    pub const PLUGIN_REACHABLE: &str = "weir.dev/Reachable";
    /// Whether a remote plugin is asked.
    pub const PLUGIN_READY: &str = "weir.dev/Ready";
}

/// Why a condition is what it is.
pub mod reasons {
    /// Not ready: another condition is not true, or nothing has been made yet.
    pub const DEPENDENCIES_NOT_READY: &str = "DependenciesNotReady";
    /// Not ready: pods are missing, or the load balancer has no address yet.
    pub const WAITING_TO_BECOME_READY: &str = "WaitingToBecomeReady";
    /// Not ready: an object the spec names does not exist or cannot be used.
    pub const REFERENCED_RESOURCES_NOT_AVAILABLE: &str = "ReferencedResourcesNotAvailable";
    /// Not ready: the API server refused a child, or a child cannot be made.
    pub const UNABLE_TO_PROVISION: &str = "UnableToProvision";
    /// Not ready: the spec contradicts itself in a way the schema cannot see.
    pub const VALIDATION_FAILED: &str = "ValidationFailed";
    /// Ready: everything is as the spec says.
    pub const READY: &str = "Ready";
    /// Every extension is of a known sort.
    pub const ACCEPTED_EXTENSIONS: &str = "AcceptedExtensions";
    /// An extension is of a sort this operator does not know; it says which.
    pub const NOT_SUPPORTED_EXTENSIONS: &str = "NotSupportedExtensions";
    /// The extension is part of the pod template.
    pub const KONNECT_EXTENSION_APPLIED: &str = "KonnectExtensionApplied";
    /// A reference crosses a border it may not cross.
    pub const REF_NOT_PERMITTED: &str = "RefNotPermitted";
    /// The extension is missing, or what it says cannot be used.
    pub const INVALID_EXTENSION: &str = "InvalidExtension";
    /// The extension's Secret is missing, unnamed, not labelled for the operator or without a certificate.
    pub const INVALID_SECRET: &str = "InvalidSecret";
    /// The extension exists but is not ready for use yet.
    pub const KONNECT_EXTENSION_NOT_READY: &str = "KonnectExtensionNotReady";

    /// The answer is used.
    pub const APPLIED: &str = "Applied";
    /// The policy failed and the built-in one answered instead, as the policy's `onFailure` says.
    pub const FELL_BACK: &str = "FellBack";
    /// What the condition is about waits: for an answer, or for its owner's word.
    pub const HELD: &str = "Held";
    /// The answer was refused by a check and is not used.
    pub const REJECTED: &str = "Rejected";
    /// A preview is complete and waits to be promoted.
    pub const AWAITING_PROMOTION: &str = "AwaitingPromotion";
    /// A name is held by an object of a former owner that is still being deleted.
    pub const WAITING_FOR_OLD_CHILD: &str = "WaitingForOldChild";
    /// A name that the user gave is held by somebody else's object.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// No change waits.
    pub const NOTHING_HELD: &str = "NothingHeld";
    /// The pods stay as Kong's operator left them until their owner changes something or approves the difference.
    pub const TAKEOVER: &str = "Takeover";
    /// Kong's operator still runs: nothing of its children is touched.
    pub const KONG_OPERATOR_LIVE: &str = "KongOperatorLive";
    /// The artifact is being fetched for the first time.
    pub const PENDING: &str = "Pending";
    /// The artifact cannot be fetched or used.
    pub const FAILED: &str = "Failed";
    /// A fetched artifact waits for its owner's word.
    pub const AWAITING_APPROVAL: &str = "AwaitingApproval";
    /// Every plugin is in the pods.
    pub const INSTALLED: &str = "Installed";
    /// A change that comes from elsewhere waits for the owner's word.
    pub const FOREIGN_CHANGE: &str = "ForeignChange";
    /// Somebody undid a rollout of the pods, and they stay as undone until their owner goes forward.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// A DataPlane names the extension.
    pub const IN_USE: &str = "InUse";
    /// Nobody names the extension.
    pub const NOT_IN_USE: &str = "NotInUse";
}
