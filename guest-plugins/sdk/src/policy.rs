//! What every policy has, whatever slot it serves: settings.

use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    Finding, Refusal, Severity,
    bindings::base::exports::weir::policy::settings::Guest,
    finding::{finding, refuse},
    log,
};

/// Code of the finding, and of the refusal, about settings that cannot be read.
pub const INVALID_SETTINGS: &str = "InvalidSettings";

/// A policy's settings. The slot's trait adds the question it answers.
pub trait Policy {
    /// The settings document. Give it `#[serde(default, deny_unknown_fields)]`: every field has a default, and a typing error is
    /// found instead of ignored.
    type Settings: DeserializeOwned + Default;

    /// JSON Schema (2020-12) of the document; users and editors read it.
    fn schema() -> &'static str;

    /// Checks what a schema cannot say. A finding of severity error makes the settings invalid; [`Self::Settings`] that are
    /// invalid never reach `evaluate`.
    fn validate(_settings: &Self::Settings) -> Vec<Finding> {
        Vec::new()
    }
}

/// Settings of a policy without any.
///
/// ```
/// use weir_policy_sdk::{NO_SETTINGS_SCHEMA, NoSettings, Policy};
/// struct Example;
/// impl Policy for Example {
///     type Settings = NoSettings;
///     fn schema() -> &'static str {
///         NO_SETTINGS_SCHEMA
///     }
/// }
/// assert!(weir_policy_sdk::parse_settings::<Example>("{\"a\": 1}").is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Schema of [`NoSettings`].
pub const NO_SETTINGS_SCHEMA: &str =
    r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false}"#;

/// Reads and checks a settings document the way the host's calls do. An empty document means the defaults.
///
/// # Errors
/// The findings, at least one of them of severity error.
pub fn parse_settings<P: Policy>(document: &str) -> Result<(P::Settings, Vec<Finding>), Vec<Finding>> {
    let settings = if document.trim().is_empty() {
        P::Settings::default()
    } else {
        // serde's message names the field and the place, and repeats at most the offending word.
        serde_json::from_str(document).map_err(|e| vec![finding(Severity::Error, INVALID_SETTINGS, "", e.to_string())])?
    };
    let findings = P::validate(&settings);
    if findings.iter().any(|f| f.severity == Severity::Error) { Err(findings) } else { Ok((settings, findings)) }
}

/// What a slot's `evaluate` does before the author's code runs.
pub(crate) fn settings_for_evaluate<P: Policy>(document: &str) -> Result<P::Settings, Refusal> {
    log::panics();
    parse_settings::<P>(document).map(|(settings, _)| settings).map_err(|findings| {
        let messages: Vec<String> = findings.into_iter().filter(|f| f.severity == Severity::Error).map(|f| located(&f)).collect();
        refuse(INVALID_SETTINGS, format!("the settings are not valid: {}", messages.join("; ")))
    })
}

fn located(finding: &Finding) -> String {
    if finding.path.is_empty() { finding.message.clone() } else { format!("{}: {}", finding.path, finding.message) }
}

impl<P: Policy> Guest for P {
    fn schema() -> String {
        log::panics();
        P::schema().to_owned()
    }

    fn validate(settings: String) -> Vec<Finding> {
        log::panics();
        parse_settings::<P>(&settings).map_or_else(|findings| findings, |(_, findings)| findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Level {
        level: u8,
    }

    struct Example;

    impl Policy for Example {
        type Settings = Level;

        fn schema() -> &'static str {
            "{}"
        }

        fn validate(settings: &Level) -> Vec<Finding> {
            let severity = match settings.level {
                0 => return Vec::new(),
                1 => Severity::Warning,
                _ => Severity::Error,
            };
            vec![finding(severity, "Level", "level", "too high")]
        }
    }

    fn codes(document: &str) -> Vec<String> {
        <Example as Guest>::validate(document.to_owned()).into_iter().map(|f| f.code).collect()
    }

    #[test]
    fn validate_reports_what_serde_and_what_the_author_find() {
        assert!(codes("").is_empty());
        assert!(codes("{}").is_empty());
        assert_eq!(codes(r#"{"level": 1}"#), ["Level"]);
        assert_eq!(codes(r#"{"level": "x"}"#), [INVALID_SETTINGS]);
        assert_eq!(codes(r#"{"levels": 1}"#), [INVALID_SETTINGS]);
        assert_eq!(codes("[}"), [INVALID_SETTINGS]);
    }

    #[test]
    fn evaluate_never_sees_invalid_settings() {
        assert_eq!(settings_for_evaluate::<Example>(r#"{"level": 1}"#).unwrap().level, 1);
        let refusal = settings_for_evaluate::<Example>(r#"{"level": 2}"#).unwrap_err();
        assert_eq!(refusal.code, INVALID_SETTINGS);
        assert_eq!(refusal.message, "the settings are not valid: level: too high");
    }
}
