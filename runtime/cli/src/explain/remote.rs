//! The words about remote plugins, which the core has in an enum of its own.

use super::Entry;

const fn entry(code: &'static str, means: &'static str, cure: &'static str) -> Entry {
    Entry { code, of: "a reason of a remote plugin", means, cure }
}

/// All of them but `InvalidName`, which policies say too.
pub(super) const ENTRIES: &[Entry] = &[
    entry("Discovered", "The Service is the plugin of its name.", "Nothing has to be done."),
    entry("Configured", "What the Service says, and its Secrets, can be used.", "Nothing has to be done."),
    entry("Reachable", "The plugin answers over a connection that both sides trust.", "Nothing has to be done."),
    entry("Conflict", "Another Service has the plugin name.", "Give one of the two another name; the older one keeps it meanwhile."),
    entry("TooMany", "There are more remote plugins than the operator serves.", "Remove the labels of those that nobody needs."),
    entry(
        "AnnotationMissing",
        "An annotation that the Service of a plugin needs is missing, or names nothing that can be.",
        "Set it as the message says.",
    ),
    entry("InvalidPort", "The port of the annotation is no port of the Service.", "Name one of spec.ports."),
    entry(
        "InvalidServerName",
        "The name that the plugin's certificate is to be checked for is no host name.",
        "Set it to a DNS name of the certificate.",
    ),
    entry(
        "SecretMissing",
        "A Secret that the Service names is not there.",
        "Make it in the namespace of the Service; the message names it.",
    ),
    entry(
        "CertInvalid",
        "A Secret of a plugin holds no certificate, no key, or two that do not belong together.",
        "Issue it again; the message says what is wrong.",
    ),
    entry(
        "CertExpired",
        "A certificate in a Secret of a plugin has ended.",
        "Renew it; until then what was good stays in use for as long as its own certificate holds.",
    ),
    entry("Connecting", "The plugin has not been dialled yet.", "Wait; if it stays, look at the operator's log."),
    entry("NoEndpoints", "No pod of the plugin's Service is ready, or its name has no address.", "Look at the pods."),
    entry("Unreachable", "Nothing takes the connection to the plugin, or it broke.", "Look at address, port and network policies."),
    entry(
        "TLSFailed",
        "No TLS 1.3, no HTTP/2, or the plugin is between two certificates.",
        "The latter passes by itself; for the others look at how the plugin serves.",
    ),
    entry(
        "ServerNotTrusted",
        "The plugin's certificate is neither in the server Secret nor issued by one that is.",
        "Secret and plugin have to be of one issue.",
    ),
    entry(
        "ServerNameInvalid",
        "The plugin's certificate is for other names.",
        "Issue it for the Service, or name the server in the annotation.",
    ),
    entry("ServerCertExpired", "The plugin's certificate has ended, or has not begun.", "Renew it; compare clocks."),
    entry("ServerCertUnusable", "The plugin's certificate is not for servers.", "Issue it with the usage `server auth`."),
    entry(
        "ClientCertRejected",
        "The plugin does not take the operator's certificate.",
        "What the plugin trusts has to be the client Secret's certificate or its issuer.",
    ),
    entry("ProbeFailed", "The plugin does not answer its test.", "It hangs, or is overloaded: look at its pods."),
    entry(
        "CircuitOpen",
        "Calls of the plugin failed in a row, and it is left alone for a while.",
        "The next try comes by itself, after 1 s to 5 min.",
    ),
    entry("NameMismatch", "The plugin calls itself by another name than the label of its Service.", "Make them equal."),
    entry(
        "BadMetadata",
        "What the plugin says about itself cannot be used.",
        "The message names the field; `weir remote probe` shows all of it.",
    ),
    entry("NotReady", "The plugin answers, and says that it is not ready.", "Ask it why: its log, or `weir remote probe`."),
    entry("ClientSecretNotFound", "The Secret with what the operator shows is not there.", "See SecretMissing."),
    entry("ServerSecretNotFound", "The Secret with what the operator trusts is not there.", "See SecretMissing."),
    entry("InvalidClientCertificate", "The Secret with what the operator shows cannot be used.", "See CertInvalid."),
    entry("InvalidServerCertificate", "The Secret with what the operator trusts cannot be used.", "See CertInvalid."),
    entry("InvalidPortAnnotation", "The port of the annotation is none, or no port of the Service.", "See InvalidPort."),
    entry(
        "PluginNotFound",
        "A policy names a remote plugin that no Service is.",
        "Label the Service of the plugin, or correct spec.source.remote; the message names it.",
    ),
];
