//! Example of slot konnect-env: the traffic between data planes and EU control planes leaves through an audited forward proxy.
//!
//! It changes the answer of the default policy instead of copying it. For the regions in its settings it adds
//! `KONG_CLUSTER_USE_PROXY`, `KONG_PROXY_SERVER` and `KONG_PROXY_SERVER_SSL_VERIFY`.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use weir_policy_sdk::{
    Finding, KonnectEnv, Policy, Refusal, Severity, env_var, export_konnect_env, finding,
    konnect_env::{Answer, Input},
};

/// The settings document.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Regions whose traffic takes the proxy.
    pub regions: Vec<String>,
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub proxy_server: String,
    /// Whether Kong checks the certificate of an https proxy.
    pub proxy_ssl_verify: bool,
    /// Settings of the default policy.
    pub base: konnect_env::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            regions: vec!["eu".to_owned()],
            proxy_server: "http://egress-proxy.weir-system.svc:3128".to_owned(),
            proxy_ssl_verify: true,
            base: konnect_env::Settings::default(),
        }
    }
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct EuProxy;

impl Policy for EuProxy {
    type Settings = Settings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        let mut findings = settings.base.validate("base.");
        if let Some((code, message)) = bad_proxy(&settings.proxy_server) {
            findings.push(finding(Severity::Error, code, "proxyServer", message));
        }
        findings
    }
}

impl KonnectEnv for EuProxy {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        let mut answer = konnect_env::evaluate(&input, &settings.base)?;
        let about = match input.region.as_deref() {
            Some(region) if settings.regions.iter().any(|r| r == region) => {
                finding(Severity::Info, "ProxyUsed", "env.KONG_PROXY_SERVER", "the region's traffic takes the forward proxy")
            }
            Some(_) => return Ok(answer),
            // Traffic that must not bypass the proxy would do so if the unknown meant no.
            None => {
                let message = "the region is not known, so the traffic takes the forward proxy; set the region in the extension";
                finding(Severity::Warning, "RegionUnknown", "env.KONG_PROXY_SERVER", message)
            }
        };
        let verify = if settings.proxy_ssl_verify { "on" } else { "off" };
        for (name, value) in [
            ("KONG_CLUSTER_USE_PROXY", "on"),
            ("KONG_PROXY_SERVER", settings.proxy_server.as_str()),
            ("KONG_PROXY_SERVER_SSL_VERIFY", verify),
        ] {
            // The base settings' extraEnv may have them too; what this policy is for wins.
            answer.env.retain(|var| var.name != name);
            answer.env.push(env_var(name, value));
        }
        answer.env.sort_by(|a, b| a.name.cmp(&b.name));
        answer.findings.push(about);
        Ok(answer)
    }
}

fn bad_proxy(url: &str) -> Option<(&'static str, &'static str)> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Some(("InvalidProxy", "must start with http:// or https://"));
    };
    if rest.contains('@') {
        return Some((
            "SecretInSettings",
            "credentials do not belong in settings, anybody can read them; allow the cluster's addresses in the proxy",
        ));
    }
    let port = rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0));
    if port { None } else { Some(("InvalidProxy", "must end with HOST:PORT, without a path")) }
}

export_konnect_env!(EuProxy);
