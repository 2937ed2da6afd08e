package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
)

// Webhook has the webhooks of ContainerRecreateRequest.
type Webhook struct {
	// Reader reads pods and nodes from the server: requests are rare, and the cache has neither hooks nor the newest
	// writes.
	Reader client.Reader
	// Open returns how many requests for the pod are not over, as far as this process knows. It must not block.
	Open func(ctx context.Context, pod *corev1.Pod) int
}

// Mutating denies new requests that cannot be fulfilled, and fills the others.
func (w Webhook) Mutating() admission.Endpoint {
	return admission.Endpoint{Path: conversion.RecreateRequests().MutatePath(), Handler: conversion.RecreateRequests().Defaulting(w.fill)}
}

// Validating denies forbidden changes, and warns about new requests.
func (w Webhook) Validating() admission.Endpoint {
	return admission.Endpoint{Path: conversion.RecreateRequests().ValidatePath(), Handler: conversion.RecreateRequests().Validating(w.validate)}
}

func (w Webhook) fill(ctx context.Context, req admission.Request[*v1beta1.ContainerRecreateRequest]) error {
	if req.Operation != admissionv1.Create {
		return nil
	}
	errs := Validate(req.New)
	if len(errs) == 0 {
		target, err := w.target(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.New.Spec.PodName})
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		errs = Fill(req.New, target)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: contract.AppsGroup, Kind: v1beta1.ContainerRecreateRequestKind}, req.Name, errs)
	}
	return nil
}

// target reads the pod and its node. Either may be missing; any other failure is an error.
func (w Webhook) target(ctx context.Context, key client.ObjectKey) (Target, error) {
	pod := &corev1.Pod{}
	if err := w.Reader.Get(ctx, key, pod); apierrors.IsNotFound(err) {
		return Target{}, nil
	} else if err != nil {
		return Target{}, fmt.Errorf("get pod %q: %w", key.Name, err)
	}
	t := Target{Pod: pod, Open: w.Open(ctx, pod)}
	if pod.Spec.NodeName == "" {
		return t, nil
	}
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	switch err := w.Reader.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return t, fmt.Errorf("get node %q: %w", pod.Spec.NodeName, err)
	default:
		t.NodeLabels, t.NodeFound = node.Labels, true
	}
	return t, nil
}

func (w Webhook) validate(ctx context.Context, req admission.Request[*v1beta1.ContainerRecreateRequest]) (admission.Findings, error) {
	switch req.Operation {
	case admissionv1.Create:
		pod := &corev1.Pod{}
		if w.Reader.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.New.Spec.PodName}, pod) != nil {
			pod = nil // a warning is no reason to fail
		}
		return admission.Findings{Warnings: Warnings(req.New, pod)}, nil
	case admissionv1.Update:
		if reason := ForbiddenChange(req.New, req.Old, req.Version); reason != "" {
			resource := schema.GroupResource{Group: contract.AppsGroup, Resource: "containerrecreaterequests"}
			return admission.Findings{}, apierrors.NewForbidden(resource, req.Name, fmt.Errorf("%s", reason))
		}
	case admissionv1.Delete, admissionv1.Connect:
	}
	return admission.Findings{}, nil
}
