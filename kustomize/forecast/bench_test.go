package forecast_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

// A CloneSet grows from 10 pods to 500 on 500 nodes with 10,000 other pods.
func BenchmarkScale(b *testing.B) {
	scene := scenes.Settled(b, scenes.Web)
	for i := range 500 {
		name := fmt.Sprintf("n-%d", i)
		scene.Nodes = append(scene.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourcePods: resource.MustParse("110")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
		for j := range 20 {
			scene.Others = append(scene.Others, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprintf("%s-%d", name, j)},
				Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
					Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
				}}},
			})
		}
	}
	scale := edited(b, scene, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(500)) })
	for b.Loop() {
		f, err := forecast.Play(b.Context(), scene, forecast.Edit{To: scale})
		require.NoError(b, err)
		require.Equal(b, 490, f.Added)
	}
}

// The image of 1,000 pods changes, two at a time.
func BenchmarkRollout(b *testing.B) {
	scene := scenes.Settled(b, strings.ReplaceAll(scenes.Web, "replicas: 10", "replicas: 1000"))
	scene.Nodes = nil // each pod finds a place
	image := edited(b, scene, scenes.NewImage)
	for b.Loop() {
		f, err := forecast.Play(b.Context(), scene, forecast.Edit{To: image})
		require.NoError(b, err)
		require.Equal(b, 1000, f.InPlace)
	}
}
