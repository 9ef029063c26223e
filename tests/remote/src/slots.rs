//! The slots: answers that show that the question came over whole.

use tonic::{Request, Response, Status};
use weir_proto::policy::{
    ConflictResolutionAnswer, ConflictResolutionRequest, ConflictResolutionResponse, EnvVar, Finding, KonnectEnvAnswer, KonnectEnvRequest,
    KonnectEnvResponse, PluginPackagingAnswer, PluginPackagingRequest, PluginPackagingResponse, Refusal, SchemaRequest, SchemaResponse,
    Severity, ValidateRequest, ValidateResponse, conflict_resolution_answer as conflicts,
    conflict_resolution_response as conflicts_response, conflict_resolution_server::ConflictResolution,
    konnect_env_response as env_response, konnect_env_server::KonnectEnv, plugin_packaging_answer as packaging,
    plugin_packaging_response as packaging_response, plugin_packaging_server::PluginPackaging, settings_server::Settings,
};

use crate::{Fault, Handle};

#[tonic::async_trait]
impl Settings for Handle {
    async fn schema(&self, _request: Request<SchemaRequest>) -> Result<Response<SchemaResponse>, Status> {
        let schema = r#"{"type":"object","properties":{"prefix":{"type":"string"},"refuse":{"type":"boolean"}}}"#.into();
        Ok(Response::new(SchemaResponse { schema }))
    }

    async fn validate(&self, request: Request<ValidateRequest>) -> Result<Response<ValidateResponse>, Status> {
        let settings: serde_json::Value = serde_json::from_str(&request.get_ref().settings).unwrap_or_default();
        let forbidden = settings.get("prefix").and_then(serde_json::Value::as_str) == Some("forbidden");
        let finding = Finding {
            severity: Severity::Error.into(),
            code: "PrefixForbidden".into(),
            path: "prefix".into(),
            message: "another prefix, please".into(),
        };
        Ok(Response::new(ValidateResponse { findings: if forbidden { vec![finding] } else { Vec::new() } }))
    }
}

#[tonic::async_trait]
impl KonnectEnv for Handle {
    async fn evaluate(&self, request: Request<KonnectEnvRequest>) -> Result<Response<KonnectEnvResponse>, Status> {
        let _inside = self.enter().await?;
        let KonnectEnvRequest { input, settings } = request.into_inner();
        let input = input.ok_or_else(|| Status::invalid_argument("no input"))?;
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap_or_default();
        let behavior = self.get();
        let result = if behavior.fault == Fault::Empty {
            None
        } else if let Some(answer) = behavior.konnect_env {
            Some(env_response::Result::Answer(answer(&input)))
        } else if settings.get("refuse") == Some(&serde_json::Value::Bool(true)) {
            Some(env_response::Result::Refusal(Refusal { code: "NotToday".into(), message: "come back tomorrow".into() }))
        } else {
            let prefix = settings.get("prefix").and_then(serde_json::Value::as_str).unwrap_or("KONG_");
            let endpoints = input.endpoints.unwrap_or_default();
            let value = if behavior.fault == Fault::Huge { "a".repeat(5 << 20) } else { endpoints.control_plane };
            let var = |name: &str, value: String| EnvVar { name: format!("{prefix}{name}"), value };
            let env = vec![var("CLUSTER_CONTROL_PLANE", value), var("PLUGIN_VERSION", behavior.version)];
            let findings = vec![Finding { severity: 99, code: "Greeting".into(), path: String::new(), message: input.control_plane_id }];
            Some(env_response::Result::Answer(KonnectEnvAnswer { env, findings, ..KonnectEnvAnswer::default() }))
        };
        Ok(Response::new(KonnectEnvResponse { result }))
    }
}

#[tonic::async_trait]
impl ConflictResolution for Handle {
    async fn evaluate(&self, request: Request<ConflictResolutionRequest>) -> Result<Response<ConflictResolutionResponse>, Status> {
        let _inside = self.enter().await?;
        let input = request.into_inner().input.ok_or_else(|| Status::invalid_argument("no input"))?;
        let empty = self.get().fault == Fault::Empty;
        let resolution =
            |_| conflicts::Resolution { verdict: (!empty).then_some(conflicts::resolution::Verdict::Keep(0)), findings: Vec::new() };
        let resolutions = input.conflicts.iter().map(resolution).collect();
        let result = Some(conflicts_response::Result::Answer(ConflictResolutionAnswer { resolutions }));
        Ok(Response::new(ConflictResolutionResponse { result }))
    }
}

#[tonic::async_trait]
impl PluginPackaging for Handle {
    async fn evaluate(&self, request: Request<PluginPackagingRequest>) -> Result<Response<PluginPackagingResponse>, Status> {
        let _inside = self.enter().await?;
        let input = request.into_inner().input.ok_or_else(|| Status::invalid_argument("no input"))?;
        let placements = input.files.iter().map(|f| packaging::Placement { source: f.path.clone(), target: f.path.clone() }).collect();
        let plugin = packaging::Plugin { name: "remote".into(), version: Some("1.0".into()), priority: Some(1_000), placements };
        let answer = PluginPackagingAnswer { plugins: vec![plugin], ..PluginPackagingAnswer::default() };
        Ok(Response::new(PluginPackagingResponse { result: Some(packaging_response::Result::Answer(answer)) }))
    }
}
