//! Plugins that Kong bundles: `KONG_PLUGINS=bundled` loads them, and one of the same name would take their place.

/// Names of the plugins in every Kong 3 image (`kong/constants.lua` of Kong 3.9), sorted.
pub const BUNDLED: &[&str] = &[
    "acl",
    "acme",
    "ai-prompt-decorator",
    "ai-prompt-guard",
    "ai-prompt-template",
    "ai-proxy",
    "ai-request-transformer",
    "ai-response-transformer",
    "aws-lambda",
    "azure-functions",
    "basic-auth",
    "bot-detection",
    "correlation-id",
    "cors",
    "datadog",
    "file-log",
    "grpc-gateway",
    "grpc-web",
    "hmac-auth",
    "http-log",
    "ip-restriction",
    "jwt",
    "key-auth",
    "ldap-auth",
    "loggly",
    "oauth2",
    "opentelemetry",
    "post-function",
    "pre-function",
    "prometheus",
    "proxy-cache",
    "rate-limiting",
    "redirect",
    "request-size-limiting",
    "request-termination",
    "request-transformer",
    "response-ratelimiting",
    "response-transformer",
    "session",
    "standard-webhooks",
    "statsd",
    "syslog",
    "tcp-log",
    "udp-log",
    "zipkin",
];

/// Whether Kong bundles a plugin of this name.
#[must_use]
pub fn is_bundled(name: &str) -> bool {
    BUNDLED.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        assert!(BUNDLED.is_sorted());
        assert!(BUNDLED.iter().all(|name| is_bundled(name)));
        assert!(!is_bundled("my-plugin") && !is_bundled("CORS"));
    }
}
