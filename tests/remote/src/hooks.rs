//! The hooks of CNPG-I: a label for what is made, a greeting in the status, and on with the pass.

use tonic::{Request, Response, Status};
use weir_proto::{
    lifecycle::{
        OperatorLifecycleCapabilities, OperatorLifecycleCapabilitiesRequest, OperatorLifecycleCapabilitiesResponse,
        OperatorLifecycleRequest, OperatorLifecycleResponse, OperatorOperationType, operator_lifecycle_server::OperatorLifecycle,
        operator_operation_type::Type as Verb,
    },
    operator::{self as op, operator_capability as capability, operator_server::Operator},
    reconciler::{
        ReconcilerHooksCapabilitiesRequest, ReconcilerHooksCapabilitiesResult, ReconcilerHooksCapability, ReconcilerHooksRequest,
        ReconcilerHooksResult, reconciler_hooks_capability::Kind, reconciler_hooks_result::Behavior,
        reconciler_hooks_server::ReconcilerHooks,
    },
};

use crate::{Fault, Handle};

#[tonic::async_trait]
impl OperatorLifecycle for Handle {
    async fn get_capabilities(
        &self,
        _request: Request<OperatorLifecycleCapabilitiesRequest>,
    ) -> Result<Response<OperatorLifecycleCapabilitiesResponse>, Status> {
        let verb = |verb: Verb| OperatorOperationType { r#type: verb.into() };
        let operation_types = [Verb::Create, Verb::Patch, Verb::Delete, Verb::Evaluate].map(verb).to_vec();
        let deployments = OperatorLifecycleCapabilities { group: "apps".into(), kind: "Deployment".into(), operation_types };
        Ok(Response::new(OperatorLifecycleCapabilitiesResponse { lifecycle_capabilities: vec![deployments] }))
    }

    async fn lifecycle_hook(&self, request: Request<OperatorLifecycleRequest>) -> Result<Response<OperatorLifecycleResponse>, Status> {
        let _inside = self.enter().await?;
        let object: serde_json::Value = serde_json::from_slice(&request.get_ref().object_definition)
            .map_err(|error| Status::invalid_argument(format!("the object is no JSON: {error}")))?;
        let behavior = self.get();
        if behavior.fault == Fault::Huge {
            return Ok(Response::new(OperatorLifecycleResponse { json_patch: vec![b' '; 5 << 20] }));
        }
        let mut patch = vec![];
        if object.pointer("/metadata/labels").is_none() {
            patch.push(serde_json::json!({"op": "add", "path": "/metadata/labels", "value": {}}));
        }
        patch.push(serde_json::json!({"op": "add", "path": "/metadata/labels/touched-by", "value": behavior.name}));
        Ok(Response::new(OperatorLifecycleResponse { json_patch: serde_json::Value::Array(patch).to_string().into_bytes() }))
    }
}

#[tonic::async_trait]
impl ReconcilerHooks for Handle {
    async fn get_capabilities(
        &self,
        _request: Request<ReconcilerHooksCapabilitiesRequest>,
    ) -> Result<Response<ReconcilerHooksCapabilitiesResult>, Status> {
        let cluster = ReconcilerHooksCapability { kind: Kind::Cluster.into() };
        Ok(Response::new(ReconcilerHooksCapabilitiesResult { reconciler_capabilities: vec![cluster] }))
    }

    async fn pre(&self, _request: Request<ReconcilerHooksRequest>) -> Result<Response<ReconcilerHooksResult>, Status> {
        let _inside = self.enter().await?;
        Ok(Response::new(ReconcilerHooksResult { behavior: Behavior::Continue.into(), requeue_after: 0 }))
    }

    async fn post(&self, _request: Request<ReconcilerHooksRequest>) -> Result<Response<ReconcilerHooksResult>, Status> {
        let _inside = self.enter().await?;
        Ok(Response::new(ReconcilerHooksResult { behavior: Behavior::Requeue.into(), requeue_after: 30 }))
    }
}

#[tonic::async_trait]
impl Operator for Handle {
    async fn get_capabilities(
        &self,
        _request: Request<op::OperatorCapabilitiesRequest>,
    ) -> Result<Response<op::OperatorCapabilitiesResult>, Status> {
        use capability::rpc::Type;
        let call = |call: Type| op::OperatorCapability { r#type: Some(capability::Type::Rpc(capability::Rpc { r#type: call.into() })) };
        let mut capabilities = [Type::ValidateClusterCreate, Type::ValidateClusterChange, Type::SetStatusInCluster].map(call).to_vec();
        if self.get().fault == Fault::NilCapability {
            capabilities.push(op::OperatorCapability { r#type: None });
        }
        Ok(Response::new(op::OperatorCapabilitiesResult { capabilities }))
    }

    async fn validate_cluster_create(
        &self,
        request: Request<op::OperatorValidateClusterCreateRequest>,
    ) -> Result<Response<op::OperatorValidateClusterCreateResult>, Status> {
        let _inside = self.enter().await?;
        let validation_errors = errors(&request.get_ref().definition);
        Ok(Response::new(op::OperatorValidateClusterCreateResult { validation_errors }))
    }

    async fn validate_cluster_change(
        &self,
        request: Request<op::OperatorValidateClusterChangeRequest>,
    ) -> Result<Response<op::OperatorValidateClusterChangeResult>, Status> {
        let _inside = self.enter().await?;
        let validation_errors = errors(&request.get_ref().new_cluster);
        Ok(Response::new(op::OperatorValidateClusterChangeResult { validation_errors }))
    }

    async fn mutate_cluster(
        &self,
        _request: Request<op::OperatorMutateClusterRequest>,
    ) -> Result<Response<op::OperatorMutateClusterResult>, Status> {
        Err(Status::unimplemented("not advertised"))
    }

    async fn set_status_in_cluster(
        &self,
        _request: Request<op::SetStatusInClusterRequest>,
    ) -> Result<Response<op::SetStatusInClusterResponse>, Status> {
        let _inside = self.enter().await?;
        let json_status = serde_json::json!({"greeting": self.get().name}).to_string().into_bytes();
        Ok(Response::new(op::SetStatusInClusterResponse { json_status }))
    }

    async fn deregister(&self, _request: Request<op::DeregisterRequest>) -> Result<Response<op::DeregisterResponse>, Status> {
        Err(Status::unimplemented("not advertised"))
    }
}

/// Objects with the annotation `refuse` are not wanted.
fn errors(object: &[u8]) -> Vec<op::ValidationError> {
    let object: serde_json::Value = serde_json::from_slice(object).unwrap_or_default();
    let Some(reason) = object.pointer("/metadata/annotations/refuse") else { return Vec::new() };
    let path_components = ["metadata", "annotations", "refuse"].map(str::to_owned).to_vec();
    vec![op::ValidationError { path_components, value: reason.to_string(), message: "not wanted".into() }]
}
