//! Who the plugin is.

use tonic::{Request, Response, Status};
use weir_proto::{
    identity::{
        GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginMetadataRequest, GetPluginMetadataResponse, PluginCapability,
        ProbeRequest, ProbeResponse, identity_server::Identity, plugin_capability as capability,
    },
    policy::{SLOT_VERSION, slot_key},
};

use crate::{Fault, Handle};

#[tonic::async_trait]
impl Identity for Handle {
    async fn get_plugin_metadata(
        &self,
        _request: Request<GetPluginMetadataRequest>,
    ) -> Result<Response<GetPluginMetadataResponse>, Status> {
        let behavior = self.identify().await;
        let manifest = behavior.slots.iter().map(|slot| (slot_key(slot), SLOT_VERSION.to_owned())).collect();
        let (name, version) = (behavior.name, behavior.version);
        Ok(Response::new(GetPluginMetadataResponse { name, version, manifest, ..GetPluginMetadataResponse::default() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _request: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        use capability::service::Type;
        let behavior = self.identify().await;
        let service =
            |service: Type| PluginCapability { r#type: Some(capability::Type::Service(capability::Service { r#type: service.into() })) };
        // One for databases too: it must be passed over.
        let mut capabilities: Vec<_> =
            [Type::OperatorService, Type::WalService, Type::LifecycleService, Type::ReconcilerHooks].map(service).to_vec();
        if behavior.fault == Fault::NilCapability {
            capabilities.push(PluginCapability { r#type: None });
            capabilities.push(PluginCapability { r#type: Some(capability::Type::Service(capability::Service { r#type: 4_711 })) });
        }
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        let behavior = self.identify().await;
        Ok(Response::new(ProbeResponse { ready: behavior.ready }))
    }
}
