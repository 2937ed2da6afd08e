package whatif

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/admission"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

const covering = `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 50%
  protectOperations: [DELETE, EVICT, UPDATE]
  protectTotalReplicas: 7
  ignoredPodSelector: {matchLabels: {role: canary}}
status: {unavailableAllowed: 1, currentAvailable: 3, desiredAvailable: 2, totalReplicas: 4, disruptedPods: {web-0: "2026-01-02T03:04:05Z"}, unavailablePods: {web-1: "2026-01-02T03:04:05Z"}}
`

// watched returns budgets of a world with the objects.
func watched(objects ...action.Object) *Budgets {
	w := cluster.New(cluster.Options{Begin: gen.Epoch()})
	for _, o := range objects {
		w.Add(o)
	}
	b := New()
	b.Watch(w)
	return b
}

// empty is a server without objects.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(cluster.ResourceOf(o), key.Name)
}

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// podsOf returns the pods of the seeds.
func podsOf(f *testing.F) []action.Object {
	f.Helper()
	var all []action.Object
	for _, raw := range fuzz.Pods(f) {
		pod := &corev1.Pod{}
		require.NoError(f, json.Unmarshal(raw, pod))
		all = append(all, pod)
	}
	return all
}

func FuzzBudgets(f *testing.F) {
	b := watched()
	w := admission.Budgets{Cover: b.cover, Live: empty{}, Gates: features.Defaults(featuregates.All()...)}
	fuzz.Admission{
		Validating: w.Validating().Handler, Convert: conversion.Convert, CRD: fuzz.ReadCRD(f, "../config/crd/podunavailablebudgets.yaml"),
	}.Run(f, append(fuzz.Read(f, "../config/samples/*.yaml"), fuzz.Documents(f, covering)...)...)
}

// Requests for pods, which one budget covers.
func FuzzPods(f *testing.F) {
	var budget v1beta1.PodUnavailableBudget
	require.NoError(f, json.Unmarshal(fuzz.Documents(f, covering)[0], &budget))
	b := watched(append(podsOf(f), &budget)...)
	fuzz.Admission{Validating: b.webhook.Validating().Handler, Subresources: []string{"status", "resize"}}.Run(f, fuzz.Pods(f)...)
}

// Budgets as they may be stored: any client with the right can write their status, and objects of before have no defaults.
func FuzzStored(f *testing.F) {
	pods := podsOf(f)
	fuzz.Typed(f, fuzz.ReadCRD(f, "../config/crd/podunavailablebudgets.yaml"), func(_ *testing.T, _, after *v1beta1.PodUnavailableBudget) {
		after.Namespace = pods[0].GetNamespace()
		b := watched(append([]action.Object{after}, pods...)...)
		for _, pod := range pods {
			_ = b.webhook.Change(quiet(), coreadmission.Request[*corev1.Pod]{
				Operation: admissionv1.Delete, Old: pod.(*corev1.Pod), Namespace: pod.GetNamespace(), Name: pod.GetName(),
			})
		}
		b.States()
	}, fuzz.Documents(f, covering)...)
}
