//! A policy whose answers break the host's rules, one at a time: `{"kind": …}` in the settings says which.

use serde::Deserialize;
use weir_policy_sdk::{
    KonnectEnv, Policy, Refusal, Severity, env_var, export_konnect_env, finding,
    konnect_env::{Answer, Input, Volume, VolumeSource, read_only, secret_volume},
    refuse,
};

/// What is wrong with the answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    /// A name that is no C identifier.
    #[default]
    EnvName,
    /// One variable twice.
    EnvTwice,
    /// A volume with a Secret that is not the certificate's.
    ForeignSecret,
    /// A mount outside its volume.
    MountPath,
    /// A variant case that this contract does not have.
    UnknownSource,
    /// A finding's code with a line break.
    FindingCode,
    /// A refusal's code that is no word.
    RefusalCode,
    /// A probe of another host.
    ReadinessPath,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    kind: Kind,
}

struct GarbageOutput;

impl Policy for GarbageOutput {
    type Settings = Settings;

    fn schema() -> &'static str {
        r#"{"type":"object","additionalProperties":false,"properties":{"kind":{"enum":["envName","envTwice","foreignSecret","mountPath","unknownSource","findingCode","refusalCode","readinessPath"],"default":"envName"}}}"#
    }
}

impl KonnectEnv for GarbageOutput {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        let good = Answer::default();
        Ok(match settings.kind {
            Kind::EnvName => Answer { env: vec![env_var("1 BAD=", "x")], ..good },
            Kind::EnvTwice => Answer { env: vec![env_var("A", "1"), env_var("A", "2")], ..good },
            Kind::ForeignSecret => Answer { volumes: vec![secret_volume("v", "somebody-elses-secret", 0o644)], ..good },
            Kind::MountPath => {
                let volume = secret_volume("v", input.certificate.secret_name, 0o644);
                let mut mount = read_only(&volume, "/x");
                mount.sub_path = Some("../../etc".to_owned());
                Answer { mounts: vec![mount], volumes: vec![volume], ..good }
            }
            Kind::UnknownSource => {
                let source = VolumeSource::Other(r#"{"hostPath": {"path": "/"}}"#.to_owned());
                Answer { volumes: vec![Volume { name: "v".to_owned(), source, extensions: Vec::new() }], ..good }
            }
            Kind::FindingCode => Answer { findings: vec![finding(Severity::Info, "Two\nLines", "", "x")], ..good },
            Kind::RefusalCode => return Err(refuse("not a code", "x")),
            Kind::ReadinessPath => Answer { readiness_path: Some("http://elsewhere/".to_owned()), ..good },
        })
    }
}

export_konnect_env!(GarbageOutput);
