//! What the operator says of its own work: reasons of events, of ReconcilePolicies and of installations.

use super::Entry;

const fn event(code: &'static str, means: &'static str, cure: &'static str) -> Entry {
    Entry { code, of: "a reason of events", means, cure }
}

const fn policy(code: &'static str, means: &'static str, cure: &'static str) -> Entry {
    Entry { code, of: "a reason of a ReconcilePolicy", means, cure }
}

const fn finding(code: &'static str, means: &'static str, cure: &'static str) -> Entry {
    Entry { code, of: "a finding", means, cure }
}

const NOTHING: &str = "Nothing has to be done.";

/// All of them.
pub(super) const ENTRIES: &[Entry] = &[
    event("Created", "A child was made.", NOTHING),
    event("Updated", "A child was changed.", "If it was not you, the DataPlane's conditions say which change it was."),
    event("Deleted", "A child that is not wanted any more was deleted.", NOTHING),
    event("TakenOver", "A child of Kong's operator is Weir's now, under its name.", NOTHING),
    event(
        "Reclaimed",
        "Fields of a child that somebody else had taken are Weir's again.",
        "See who took them: `kubectl get -o yaml --show-managed-fields`.",
    ),
    event("CertificateMinted", "A certificate for the admin API was made.", NOTHING),
    event("PluginProvided", "Content of a plugin was copied to where pods mount it.", NOTHING),
    event("PluginReleased", "Content that no pod can use any more was released.", NOTHING),
    event("FinalizerSet", "A finalizer was set: the object is in use.", NOTHING),
    event("FinalizerRemoved", "A finalizer was removed: nobody uses the object.", NOTHING),
    event("InstructionAnswered", "A one-time annotation was answered.", NOTHING),
    event("InstructionDone", "A one-time annotation was carried out and removed.", NOTHING),
    event(
        "ChangeRodeAlong",
        "A held change could not be kept apart from a change of the owner's own, and rolled with it.",
        "See the data of the event for what it was.",
    ),
    event("WriteFailed", "The API server refused a write.", "The data has the server's words: quota, admission, RBAC or a name."),
    event(
        "Contended",
        "Another manager changes a child again and again; Weir repairs it less and less often.",
        "Find it with `kubectl get -o yaml --show-managed-fields`, and let one of the two let go.",
    ),
    event(
        "Altered",
        "Admission changed a value that was sent; it is left as it is.",
        "Change the webhook or policy, if the value matters.",
    ),
    event("PluginReady", "A remote plugin is ready.", NOTHING),
    event("PluginCertificateEnds", "A certificate of a remote plugin ends soon.", "Renew it; the data says when it ends."),
    event(
        "InvalidTenants",
        "The annotation with the namespaces that may use a plugin cannot be read, so that none may.",
        "Write names of namespaces, separated by commas, or `*`.",
    ),
    event("LookFailed", "A look at a registry that was asked for failed.", "The data has the registry's answer; what is in force stays."),
    event(
        "NoRevisionLeft",
        "The revision in force fails, and no former one can take over.",
        "Publish another one, or change the settings.",
    ),
    event(
        "NotTakenAgain",
        "A revision that failed in use is asked for again, and not taken.",
        "Publish another one, or set weir.dev/check-at to a new value to try it again.",
    ),
    policy("Activated", "A revision took over.", NOTHING),
    policy("Active", "A revision answers.", NOTHING),
    policy("Shadow", "The policy is asked, and its answers are compared and not used.", "Set mode to Enforce when you want them."),
    policy("Agrees", "The shadow said the same as the policy in force, so far.", NOTHING),
    policy("NotAsked", "The shadow was not asked about anything yet.", "See its targets, and whether an object asks the slot."),
    policy("Differs", "The shadow gave another answer.", "The message names the fields."),
    policy("Refuses", "The shadow refused where the policy in force answers.", "The message has its words."),
    policy(
        "Fails",
        "The shadow failed where the policy in force answers.",
        "See the end in the message: Deadline, Memory, Trap and so on.",
    ),
    policy("Superseded", "A later revision took over.", NOTHING),
    policy("Removed", "The policy left its source, and the revision with it.", NOTHING),
    policy("Paused", "weir.dev/paused is set: nothing but the status is written.", "Remove the annotation to go on."),
    policy("Deleting", "The object is being deleted.", NOTHING),
    policy(
        "Retrying",
        "A step failed in a way that passes by itself, and is tried again.",
        "If it stays, the message says what to look at.",
    ),
    policy("NotRunning", "The revision in force is not loaded in this replica.", "Wait; if it stays, the message says what keeps it."),
    policy("Resolved", "The reference leads to a component.", NOTHING),
    policy("Signed", "The component has the signatures that are wanted.", NOTHING),
    policy(
        "NotRequired",
        "Nobody wants a signature of it.",
        "Ask for one with spec.source.oci.verify, or in the operator's verification list.",
    ),
    policy("Compatible", "The component serves the slot.", NOTHING),
    policy("Valid", "The component takes its settings.", NOTHING),
    policy(
        "Invalid",
        "The component does not take its settings.",
        "The message names the field; `weir policy check FILE --settings S` checks them.",
    ),
    policy("InvalidImage", "spec.source.oci.image is no reference.", "Write registry/repository:tag, better with @sha256:…."),
    policy("InvalidReference", "The reference, or the range of versions, cannot be read.", "The message names the field and the form."),
    policy("InvalidTargets", "A selector in spec.targets cannot be read.", "The message names it."),
    policy(
        "NotSupported",
        "The spec asks for something that this version does not do.",
        "The message says what; use another slot, or a newer operator.",
    ),
    policy(
        "TenantPoliciesDisabled",
        "The policy stands outside of the operator's namespace, and such policies are not allowed.",
        "Put it there, or start the operator with --tenant-policies.",
    ),
    policy("TenantsNotAllowed", "The remote plugin may not be used from this namespace.", "Set weir.dev/plugin-tenants on its Service."),
    policy("SlotNotServed", "The remote plugin does not serve the slot.", "`weir remote probe` says which it serves."),
    policy(
        "NotFound",
        "The registry has no such artifact, or an object that the policy names is not there.",
        "Push it, make it, or correct the name; the message has it.",
    ),
    policy(
        "Unauthorized",
        "The registry does not give the artifact to these credentials.",
        "Name a pull Secret with the right ones in spec.source.oci.pullSecretRef.",
    ),
    policy("Unusable", "The artifact is none that can be used.", "`weir policy inspect REF` says what it is."),
    policy(
        "InvalidKey",
        "A public key that signatures are checked with cannot be used.",
        "Put the PEM into the Secret and key that the message names.",
    ),
    policy(
        "NotAllowed",
        "The policy asks for plain HTTP, and the operator does not allow it with this registry.",
        "Use HTTPS, or start the operator with --insecure-registry.",
    ),
    policy(
        "PullSecret",
        "The pull Secret cannot be used.",
        "Make one of type kubernetes.io/dockerconfigjson; the message names what is wrong.",
    ),
    policy(
        "SecretNotFound",
        "A Secret that the policy names is not there.",
        "Make it in the namespace of the policy; the message names it.",
    ),
    policy(
        "SecretNotRead",
        "A Secret that the policy names could not be read.",
        "It is tried again; if it stays, look at the operator's roles.",
    ),
    policy("CaNotFound", "The ConfigMap with the registry's CA, or its key, is not there.", "Make it as the message says."),
    policy(
        "CaNotRead",
        "The ConfigMap with the registry's CA could not be read.",
        "It is tried again; if it stays, look at the operator's roles.",
    ),
    policy("CaInvalid", "The registry's CA is no certificate in PEM form.", "Put the certificates into the key that the message names."),
    policy(
        "Lost",
        "The revision in force is in no cache, and its artifact has no recorded digest.",
        "Publish it again; until then nobody answers after a restart.",
    ),
    policy(
        "DigestMismatch",
        "The registry holds something else than what was recorded.",
        "Do not use the artifact before you know why; publish it again.",
    ),
    policy("Internal", "Looking at the policy failed inside of the operator.", "Its log says more; report it."),
    policy("NotSigned", "The artifact has no signature that counts.", "Sign it, or correct who may sign it."),
    policy(
        "WrongSigner",
        "The artifact is signed by somebody who is not asked for.",
        "Have it signed by the right one, or correct who may sign it.",
    ),
    policy("Malformed", "A signature of the artifact cannot be read.", "Sign it again."),
    policy(
        "NoTrustRoot",
        "Keyless signatures are asked for, and nobody said whose certificates count.",
        "Start the operator with --trust-root.",
    ),
    finding("ArtifactNote", "Something about an artifact that is good to know.", NOTHING),
    finding("ArtifactSigned", "The artifact is signed; the message says by whom.", NOTHING),
    finding("FetchFailed", "The artifact could not be fetched again; what is in force stays.", "The message has the registry's answer."),
    finding(
        "PullSecretUnusable",
        "The pull Secret cannot be used.",
        "Make one of type kubernetes.io/dockerconfigjson; the message names what is wrong.",
    ),
    finding("ClaimsUnreadable", "weir.dev/claims is not what the operator writes; it is made anew from what pods have.", "Do not edit it."),
    finding("TooManyClaims", "More gateways claim the installation than are recorded.", "Use several installations."),
    finding("InvalidPaused", "weir.dev/paused has a word that nobody knows.", "Write \"true\", or remove it."),
    finding("InvalidRollout", "weir.dev/rollout has a word that nobody knows.", "Write Manual or Automatic."),
    finding("OldImage", "The image is below Kong 3.0.0, and image validation is off.", "Use a newer image."),
    finding("UnknownImageVersion", "The tag of the image says no version, so it is not checked.", NOTHING),
    finding("UnknownDatabase", "KONG_DATABASE comes from elsewhere; only `off` works.", "Write the value in the pod template."),
    finding("ReservedKey", "A label or annotation belongs to the operator and is left out.", "Remove it from the spec."),
    finding("PluginTwice", "spec.pluginsToInstall names one installation twice.", "Remove one of the two."),
];
