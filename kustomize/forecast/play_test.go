package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

// edited returns the set of a scene with a field of its only container, or of its rolling update, set.
func edited(t testing.TB, s *forecast.Scene, edit func(*v1beta1.CloneSet)) *unstructured.Unstructured {
	t.Helper()
	set := &v1beta1.CloneSet{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(s.Set.Object, set))
	edit(set)
	return scenes.Untyped(t, set)
}

func TestAnEditIsForetold(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*v1beta1.CloneSet)
		scene func(*forecast.Scene)
		with  forecast.Edit
		check func(*testing.T, *forecast.Report)
	}{
		"an image, in place": {
			edit: scenes.NewImage,
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, progress.Complete, f.Phase, f.Message)
				assert.Equal(t, []int{10, 0, 8, 10}, []int{f.InPlace, f.Recreated, f.LowestAvailable, f.MostPods})
				assert.Len(t, f.Batches, 5)
				assert.True(t, f.Holds())
			},
		},
		"a port, with new pods": {
			edit: func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, progress.Complete, f.Phase, f.Message)
				assert.Equal(t, []int{0, 10, 8}, []int{f.InPlace, f.Recreated, f.LowestAvailable})
				assert.Contains(t, fmt.Sprint(f.Answers), "recreated")
			},
		},
		"an image that crashes": {
			edit: scenes.NewImage,
			with: forecast.Edit{Crash: []string{"app:v2"}},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, progress.Failed, f.Phase, f.Message)
				assert.Equal(t, []int{2, 8}, []int{f.InPlace, f.LowestAvailable})
				assert.False(t, f.Holds())
			},
		},
		"a PodDisruptionBudget below the limit": {
			edit: scenes.NewImage,
			scene: func(s *forecast.Scene) {
				s.Budgets = []*policyv1.PodDisruptionBudget{{
					ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
					Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
					Status:     policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 9, CurrentHealthy: 10},
				}}
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []forecast.Budget{{Kind: "PodDisruptionBudget", Name: "web", Desired: 9, Lowest: 8, Broken: true}}, f.Budgets)
				assert.Equal(t, progress.Complete, f.Phase)
				assert.False(t, f.Holds())
			},
		},
		"a PodUnavailableBudget that lets one go at a time": {
			edit: scenes.NewImage,
			scene: func(s *forecast.Scene) {
				s.Unavailable = []*unstructured.Unstructured{scenes.Object(t, `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web, namespace: default, uid: pub}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}
`)}
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, progress.Complete, f.Phase, f.Message)
				assert.Equal(t, []int{10, 9}, []int{f.InPlace, f.LowestAvailable})
				require.Len(t, f.Budgets, 1)
				assert.Equal(t, []int{9, 9}, []int{f.Budgets[0].Desired, f.Budgets[0].Lowest})
				assert.Positive(t, f.Budgets[0].Refused)
				assert.True(t, f.Holds())
			},
		},
		"start times of 20 s": {
			edit: scenes.NewImage,
			with: forecast.Edit{Times: &forecast.Times{Creating: time.Second, Starting: 20 * time.Second}},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.InDelta(t, 5*22, f.Seconds, 10)
			},
		},
		"resources, by an operator that resizes no pods": {
			edit: func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": *quantity("500m")}
			},
			scene: func(s *forecast.Scene) { s.Gates = "InPlaceWorkloadVerticalScaling=false" },
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []int{0, 10}, []int{f.InPlace, f.Recreated}, f.Message)
				assert.Contains(t, fmt.Sprint(f.Answers), "recreated")
			},
		},
		"more cpu than any node has": {
			edit:  requesting("50"),
			scene: onSmallNodes,
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Failed, 0, 10}, []any{f.Phase, f.InPlace, f.LowestAvailable}, f.Message)
				assert.Contains(t, f.Message, "NodeTooSmall")
			},
		},
		"more cpu than any node has, before Kubernetes 1.36": {
			edit: requesting("50"),
			scene: func(s *forecast.Scene) {
				onSmallNodes(s)
				s.Minor = 35
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Failed, 10}, []any{f.Phase, f.LowestAvailable}, f.Message)
				assert.Contains(t, f.Message, "ResizeInfeasible")
			},
		},
		"more cpu than nodes have left": {
			edit:  requesting("2500m"),
			scene: onSmallNodes,
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Failed, 10}, []any{f.Phase, f.LowestAvailable}, f.Message)
				assert.Contains(t, f.Message, "ResizeDeferred")
			},
		},
		"cpu that a node has": {
			edit:  requesting("500m"),
			scene: onSmallNodes,
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Complete, 10, 10}, []any{f.Phase, f.InPlace, f.LowestAvailable}, f.Message)
			},
		},
		"cpu beside pods of others that wait for theirs": {
			edit: requesting("1100m"),
			scene: func(s *forecast.Scene) {
				onSmallNodes(s)
				for _, n := range s.Nodes {
					s.Others = append(s.Others, waitingFor("50", "100m", n.Name))
				}
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Complete, 10, 10}, []any{f.Phase, f.InPlace, f.LowestAvailable}, f.Message)
			},
		},
		"recreated pods on full nodes": {
			edit: func(s *v1beta1.CloneSet) {
				scenes.NewImage(s)
				s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
			},
			scene: func(s *forecast.Scene) {
				onSmallNodes(s)
				for _, n := range s.Nodes {
					cpu := n.Status.Allocatable.Cpu()
					cpu.Sub(*quantity("1"))
					n.Status.Allocatable["cpu"] = *cpu
				}
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, []any{progress.Complete, 10, 8}, []any{f.Phase, f.Recreated, f.LowestAvailable}, f.Message)
			},
		},
		"a new pod with an image that another pod cannot pull": {
			edit: func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(11)) },
			scene: func(s *forecast.Scene) {
				status := &s.Pods[0].Status.ContainerStatuses[0]
				status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
				status.Ready = false
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Equal(t, progress.Failed, f.Phase)
				assert.Contains(t, f.Message, "ErrImagePull (web-")
			},
		},
		"a lost node": {
			with: forecast.Edit{LoseNodes: []string{"node-1"}},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				assert.Less(t, f.LowestAvailable, 10)
			},
		},
		"a surge without room": {
			edit: func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(12)) },
			scene: func(s *forecast.Scene) {
				for _, n := range s.Nodes {
					n.Status.Allocatable = corev1.ResourceList{"cpu": *quantity("4"), "pods": *quantity("10")}
				}
				s.Nodes = s.Nodes[:3]
			},
			check: func(t *testing.T, f *forecast.Report) {
				t.Helper()
				t.Log(f)
				assert.Equal(t, 2, f.Added)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene := scenes.Settled(t, scenes.Web)
			if c.scene != nil {
				c.scene(scene)
			}
			if c.edit != nil {
				c.with.To = edited(t, scene, c.edit)
			}
			f, err := forecast.Play(t.Context(), scene, c.with)
			require.NoError(t, err)
			t.Log(f.Seconds, f.Phase, f.Message, f.Waits, f.Answers)
			c.check(t, f)
			again, err := forecast.Play(t.Context(), scene, c.with)
			require.NoError(t, err)
			assert.Equal(t, f, again, "a scene can be played more than once")
		})
	}
}

// requesting returns the edit that changes the cpu of a pod.
func requesting(cpu string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *quantity(cpu)}
	}
}

// waitingFor returns a pod that has an amount of cpu, and waits for another one.
func waitingFor(cpu, has, node string) *corev1.Pod {
	resources := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *quantity(cpu)}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node, Namespace: "other", UID: types.UID(node)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: resources(cpu)}}},
		Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Resources: new(resources(has))}},
		},
	}
}

// onSmallNodes leaves each node one core beside its pods, which have one each.
func onSmallNodes(s *forecast.Scene) {
	pods := map[string]int64{}
	for _, pod := range s.Pods {
		pods[pod.Spec.NodeName]++
	}
	for _, n := range s.Nodes {
		n.Status.Allocatable = corev1.ResourceList{"cpu": *resource.NewQuantity(pods[n.Name]+1, resource.DecimalSI), "pods": *quantity("20")}
	}
}

func quantity(text string) *resource.Quantity { q := resource.MustParse(text); return &q }

// A pod that was evicted has no containers, and none starts again.
func TestPodsThatAreOverStaySo(t *testing.T) {
	scene := scenes.Settled(t, scenes.Web)
	evicted := scene.Pods[0].DeepCopy()
	evicted.Name, evicted.UID = "web-evicted", "evicted"
	evicted.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	scene.Pods = append(scene.Pods, evicted)
	f, err := forecast.Play(t.Context(), scene, forecast.Edit{To: edited(t, scene, scenes.NewImage)})
	require.NoError(t, err)
	assert.Equal(t, []int{10, 10}, []int{f.InPlace, f.MostPods})
}
