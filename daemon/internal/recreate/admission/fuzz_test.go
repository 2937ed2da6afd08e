package admission_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"

	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/admission"
)

// onePod is a cluster in which each pod that is asked for is pod web, on a node that is there.
type onePod struct{ client.Reader }

func (onePod) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if found, ok := o.(*corev1.Pod); ok {
		pod().DeepCopyInto(found)
	}
	return nil
}

// Filling is no defaulting: the rules refuse a new request that has the fields which they fill.
func FuzzAdmission(f *testing.F) {
	w := admission.Webhook{Reader: onePod{}, Open: func(context.Context, *corev1.Pod) int { return 0 }}
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: conversion.Convert, Once: true,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/containerrecreaterequests.yaml"),
	}.Run(f, append(fuzz.Read(f, "../../../config/samples/*.yaml"), fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: again, namespace: shop}
spec: {podName: web, containers: [{name: main}], strategy: {minStartedSeconds: 3}}
`)...)...)
}
