package ownership

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

var ref = metav1.OwnerReference{
	APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "web-uid", Controller: new(true), BlockOwnerDeletion: new(true),
}

func TestReleaseRemovesTheOwnersReferenceAlone(t *testing.T) {
	a := Release(gen.Pod("web-1"), "web-uid", "it moved on")
	assert.Equal(t, action.Release, a.Verb)
	assert.Equal(t, map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"$patch": "delete", "uid": "web-uid"},
	}}}, a.Patches[0].Body)
}

func TestAdoptWritesTheReferenceAndTheLabels(t *testing.T) {
	reference := map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "web-uid", "controller": true, "blockOwnerDeletion": true,
	}
	for name, c := range map[string]struct {
		labels map[string]string
		want   map[string]any
	}{
		"without labels": {nil, map[string]any{"ownerReferences": []any{reference}}},
		"with labels": {map[string]string{"id": "1"}, map[string]any{
			"ownerReferences": []any{reference}, "labels": map[string]any{"id": "1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := Adopt(gen.Pod("web-1"), ref, c.labels, "")
			assert.Equal(t, action.Adopt, a.Verb)
			assert.Equal(t, map[string]any{"metadata": c.want}, a.Patches[0].Body)
		})
	}
}

func TestPatchReplacesOneReferenceByAnother(t *testing.T) {
	pod := gen.Pod("web-1")
	pod.UID = "pod-uid"
	assert.Equal(t, map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"$patch": "delete", "uid": "web-uid"},
		map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "pod-uid"},
	}}}, ReferencesPatch([]types.UID{"web-uid"}, PodReference(pod)).Body)
}

func TestControllerIsFoundInWhicheverVersion(t *testing.T) {
	kind := schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}
	owned := func(change func(*metav1.OwnerReference)) metav1.Object {
		r := ref
		change(&r)
		pod := gen.Pod("web-1")
		pod.OwnerReferences = []metav1.OwnerReference{r}
		return pod
	}
	for name, c := range map[string]struct {
		object metav1.Object
		found  bool
	}{
		"hub version":      {owned(func(*metav1.OwnerReference) {}), true},
		"older version":    {owned(func(r *metav1.OwnerReference) { r.APIVersion = "apps.kruise.io/v1alpha1" }), true},
		"other group":      {owned(func(r *metav1.OwnerReference) { r.APIVersion = "apps/v1" }), false},
		"other kind":       {owned(func(r *metav1.OwnerReference) { r.Kind = "StatefulSet" }), false},
		"not a controller": {owned(func(r *metav1.OwnerReference) { r.Controller = nil }), false},
		"no owner":         {gen.Pod("web-1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.found, Controller(c.object, kind) != nil)
		})
	}
}
