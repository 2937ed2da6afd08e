package forecast_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

const spread = `
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web, namespace: default}
spec:
  targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  subsets:
  - name: here
    maxReplicas: 11
    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
  - name: there
    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [b]}]}
`

func TestSpreadsPlacePods(t *testing.T) {
	scene := scenes.Settled(t, scenes.Web)
	for i, zone := range []string{"a", "a", "b"} {
		node := scene.Nodes[i].DeepCopy()
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels["zone"] = zone
		scene.Nodes[i] = node
	}
	scene.Spreads = []*unstructured.Unstructured{scenes.Object(t, spread)}
	f, err := forecast.Play(t.Context(), scene, forecast.Edit{
		To: edited(t, scene, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(30)) }),
	})

	require.NoError(t, err)
	assert.Equal(t, progress.Complete, f.Phase, f.Message)
	assert.Equal(t, []forecast.Subset{
		{Spread: "web", Name: "here", Pods: 11, Limit: new(11)}, {Spread: "web", Name: "there", Pods: 19},
	}, f.Subsets)
	var out bytes.Buffer
	f.Print(&out)
	assert.Contains(t, out.String(), "  WorkloadSpread web: subset here: 11 of at most 11 pods\n  WorkloadSpread web: subset there: 19 pods, no limit\n")

	for i := range 2 { // zone a has no room
		scene.Nodes[i].Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	}
	f, err = forecast.Play(t.Context(), scene, forecast.Edit{
		To: edited(t, scene, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(30)) }),
	})
	require.NoError(t, err)
	assert.Equal(t, progress.Failed, f.Phase, "a spread with the default strategy waits for its subset: %s", f.Message)
	assert.Contains(t, f.Message, "Unschedulable")
}
