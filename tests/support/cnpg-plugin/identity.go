package main

import (
	"context"

	"github.com/cloudnative-pg/cnpg-i/pkg/identity"
)

// Identity says who the plugin is.
type Identity struct {
	identity.UnimplementedIdentityServer
	answers *Answers
}

// GetPluginMetadata answers the name of the moment.
func (i Identity) GetPluginMetadata(
	ctx context.Context, _ *identity.GetPluginMetadataRequest,
) (*identity.GetPluginMetadataResponse, error) {
	answer := i.answers.read()
	if answer.Fault == "hang-all" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &identity.GetPluginMetadataResponse{Name: answer.Name, Version: answer.Version, DisplayName: "Test"}, nil
}

// GetPluginCapabilities lists the three services, and one that only databases have.
func (i Identity) GetPluginCapabilities(
	context.Context, *identity.GetPluginCapabilitiesRequest,
) (*identity.GetPluginCapabilitiesResponse, error) {
	kinds := []identity.PluginCapability_Service_Type{
		identity.PluginCapability_Service_TYPE_OPERATOR_SERVICE,
		identity.PluginCapability_Service_TYPE_LIFECYCLE_SERVICE,
		identity.PluginCapability_Service_TYPE_RECONCILER_HOOKS,
		identity.PluginCapability_Service_TYPE_WAL_SERVICE,
	}
	response := &identity.GetPluginCapabilitiesResponse{}
	for _, kind := range kinds {
		service := &identity.PluginCapability_Service_{Service: &identity.PluginCapability_Service{Type: kind}}
		response.Capabilities = append(response.Capabilities, &identity.PluginCapability{Type: service})
	}
	if i.answers.read().Fault == "nil-capability" {
		response.Capabilities = append(response.Capabilities, &identity.PluginCapability{})
	}
	return response, nil
}

// Probe says whether it is ready. An unready one sends an empty message, which is how proto3 writes false.
func (i Identity) Probe(ctx context.Context, _ *identity.ProbeRequest) (*identity.ProbeResponse, error) {
	answer := i.answers.read()
	if answer.Fault == "hang-all" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &identity.ProbeResponse{Ready: !answer.NotReady}, nil
}
