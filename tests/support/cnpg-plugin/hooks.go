package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cloudnative-pg/cnpg-i-machinery/pkg/pluginhelper/decoder"
	"github.com/cloudnative-pg/cnpg-i-machinery/pkg/pluginhelper/object"
	"github.com/cloudnative-pg/cnpg-i/pkg/lifecycle"
	"github.com/cloudnative-pg/cnpg-i/pkg/operator"
	"github.com/cloudnative-pg/cnpg-i/pkg/reconciler"
	appsv1 "k8s.io/api/apps/v1"
)

// Label is what the plugin adds to Deployments.
const Label = "cnpg.example.com/seen"

// Lifecycle has one hook, on Deployments.
type Lifecycle struct {
	lifecycle.UnimplementedOperatorLifecycleServer
	answers *Answers
}

// GetCapabilities says which objects it wants to see, and when.
func (l Lifecycle) GetCapabilities(
	context.Context, *lifecycle.OperatorLifecycleCapabilitiesRequest,
) (*lifecycle.OperatorLifecycleCapabilitiesResponse, error) {
	deployments := &lifecycle.OperatorLifecycleCapabilities{Group: "apps", Kind: "Deployment"}
	for _, verb := range []lifecycle.OperatorOperationType_Type{
		lifecycle.OperatorOperationType_TYPE_CREATE,
		lifecycle.OperatorOperationType_TYPE_PATCH,
		lifecycle.OperatorOperationType_TYPE_EVALUATE,
	} {
		deployments.OperationTypes = append(deployments.OperationTypes, &lifecycle.OperatorOperationType{Type: verb})
	}
	return &lifecycle.OperatorLifecycleCapabilitiesResponse{
		LifecycleCapabilities: []*lifecycle.OperatorLifecycleCapabilities{deployments},
	}, nil
}

// LifecycleHook labels a Deployment with its owner's name. It decodes both objects as plugins of databases do.
func (l Lifecycle) LifecycleHook(
	ctx context.Context, request *lifecycle.OperatorLifecycleRequest,
) (*lifecycle.OperatorLifecycleResponse, error) {
	answer, err := l.answers.enter(ctx)
	if err != nil {
		return nil, err
	}
	switch answer.Fault {
	case "huge":
		return &lifecycle.OperatorLifecycleResponse{JsonPatch: bytes.Repeat([]byte(" "), 5<<20)}, nil
	case "garbage":
		response := &lifecycle.OperatorLifecycleResponse{}
		// A number where the patch should be: no client can read that.
		response.ProtoReflect().SetUnknown([]byte{0x08, 0x01})
		return response, nil
	}
	cluster, err := decoder.DecodeClusterLenient(request.GetClusterDefinition())
	if err != nil {
		return nil, fmt.Errorf("the owner: %w", err)
	}
	kind, err := object.GetKind(request.GetObjectDefinition())
	if err != nil {
		return nil, fmt.Errorf("the object's kind: %w", err)
	}
	if kind != "Deployment" {
		return nil, fmt.Errorf("asked about a %s, which it does not want", kind)
	}
	before := &appsv1.Deployment{}
	if err := decoder.DecodeObjectStrict(
		request.GetObjectDefinition(), before, appsv1.SchemeGroupVersion.WithKind("Deployment"),
	); err != nil {
		return nil, fmt.Errorf("the object: %w", err)
	}
	after := before.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[Label] = cluster.Name
	patch, err := object.CreatePatch(after, before)
	if err != nil {
		return nil, err
	}
	return &lifecycle.OperatorLifecycleResponse{JsonPatch: patch}, nil
}

// Reconciler has the hooks around a pass.
type Reconciler struct {
	reconciler.UnimplementedReconcilerHooksServer
	answers *Answers
}

// GetCapabilities says whose passes it wants to see.
func (r Reconciler) GetCapabilities(
	context.Context, *reconciler.ReconcilerHooksCapabilitiesRequest,
) (*reconciler.ReconcilerHooksCapabilitiesResult, error) {
	return &reconciler.ReconcilerHooksCapabilitiesResult{
		ReconcilerCapabilities: []*reconciler.ReconcilerHooksCapability{{Kind: reconciler.ReconcilerHooksCapability_KIND_CLUSTER}},
	}, nil
}

// Pre answers as it is told.
func (r Reconciler) Pre(ctx context.Context, _ *reconciler.ReconcilerHooksRequest) (*reconciler.ReconcilerHooksResult, error) {
	return r.answer(ctx)
}

// Post answers as it is told.
func (r Reconciler) Post(ctx context.Context, _ *reconciler.ReconcilerHooksRequest) (*reconciler.ReconcilerHooksResult, error) {
	return r.answer(ctx)
}

func (r Reconciler) answer(ctx context.Context) (*reconciler.ReconcilerHooksResult, error) {
	answer, err := r.answers.enter(ctx)
	if err != nil {
		return nil, err
	}
	behavior := reconciler.ReconcilerHooksResult_BEHAVIOR_CONTINUE
	switch answer.Behavior {
	case "requeue":
		behavior = reconciler.ReconcilerHooksResult_BEHAVIOR_REQUEUE
	case "terminate":
		behavior = reconciler.ReconcilerHooksResult_BEHAVIOR_TERMINATE
	}
	return &reconciler.ReconcilerHooksResult{Behavior: behavior, RequeueAfter: answer.RequeueAfter}, nil
}

// Operator only offers a status.
type Operator struct {
	operator.UnimplementedOperatorServer
	answers *Answers
}

// GetCapabilities says what of it may be called.
func (o Operator) GetCapabilities(
	context.Context, *operator.OperatorCapabilitiesRequest,
) (*operator.OperatorCapabilitiesResult, error) {
	status := &operator.OperatorCapability{Type: &operator.OperatorCapability_Rpc{
		Rpc: &operator.OperatorCapability_RPC{Type: operator.OperatorCapability_RPC_TYPE_SET_STATUS_IN_CLUSTER},
	}}
	result := &operator.OperatorCapabilitiesResult{Capabilities: []*operator.OperatorCapability{status}}
	if o.answers.read().Fault == "nil-capability" {
		result.Capabilities = append(result.Capabilities, &operator.OperatorCapability{})
	}
	return result, nil
}

// SetStatusInCluster greets.
func (o Operator) SetStatusInCluster(
	ctx context.Context, _ *operator.SetStatusInClusterRequest,
) (*operator.SetStatusInClusterResponse, error) {
	answer, err := o.answers.enter(ctx)
	if err != nil {
		return nil, err
	}
	return &operator.SetStatusInClusterResponse{JsonStatus: []byte(fmt.Sprintf(`{"greeting":%q}`, answer.Name))}, nil
}
