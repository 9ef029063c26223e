//! Example of slot plugin-packaging: which plugins a company installs.
//!
//! A plugin is installed if its name is listed, or if a listed signer has signed its artifact. A signer is listed by what the operator
//! calls it (`weir policy verify` shows it), or by the beginning of that and a `*`. How files are laid out is the default policy's business.

use plugin_packaging::DefaultPolicy;
use serde::Deserialize;
use weir_policy_sdk::{
    Finding, PluginPackaging, Policy, Refusal, Severity, cut, export_plugin_packaging, finding,
    plugin_packaging::{Answer, Input},
    refuse,
};

/// The settings document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Plugins that may be installed whoever signed them, or nobody.
    pub names: Vec<String>,
    /// Signers whose plugins may be installed, whatever they are called.
    pub signers: Vec<String>,
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct PluginAllowList;

impl Policy for PluginAllowList {
    type Settings = Settings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        // A star alone is everybody; whoever means that needs no list.
        let star = settings.signers.iter().any(|signer| signer == "*");
        let everybody = star.then(|| finding(Severity::Error, "Everybody", "signers", "`*` lists every signer: name them"));
        everybody.into_iter().collect()
    }
}

impl PluginPackaging for PluginAllowList {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        let signer = input.signers.iter().find(|signer| settings.signers.iter().any(|listed| is_listed(signer, listed))).cloned();
        let signed = !input.signers.is_empty();
        let mut answer = <DefaultPolicy as PluginPackaging>::evaluate(input, plugin_packaging::Settings::default())?;
        let Some(signer) = signer else {
            return match answer.plugins.iter().find(|plugin| !settings.names.contains(&plugin.name)) {
                None => Ok(answer),
                Some(plugin) => Err(refused(&plugin.name, signed)),
            };
        };
        answer.findings.push(finding(Severity::Info, "SignerListed", "", format!("installed because {} has signed it", cut(&signer, 200))));
        Ok(answer)
    }
}

fn is_listed(signer: &str, listed: &str) -> bool {
    listed.strip_suffix('*').map_or(signer == listed, |beginning| signer.starts_with(beginning))
}

fn refused(plugin: &str, signed: bool) -> Refusal {
    let by = if signed { "nobody of the listed signers has signed it" } else { "it is not signed" };
    refuse("PluginNotAllowed", format!("plugin {plugin} is not listed and {by}: have it signed, or listed"))
}

export_plugin_packaging!(PluginAllowList);
