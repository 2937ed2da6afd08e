package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const readinessGate corev1.PodConditionType = "example.io/gate"

func noon() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) }

// servingPod is ready, with one readiness gate that is True.
func servingPod() *corev1.Pod {
	earlier := metav1.NewTime(noon().Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"have": "1"}, Annotations: map[string]string{"have": "1"},
			Finalizers: []string{"example.io/have"},
		},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: readinessGate}},
			InitContainers: []corev1.Container{{Name: "proxy", Image: "proxy:v1"}},
			Containers: []corev1.Container{
				{Name: "a", Image: "a:v1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}}},
				{Name: "b", Image: "b:v1"},
			},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: readinessGate, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
		}},
	}
}

func cpu(text string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}}
}

func TestWhatIsThereIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*PodChange){
		"nothing":                   func(*PodChange) {},
		"label there":               func(c *PodChange) { c.SetLabel("have", "1") },
		"label not there":           func(c *PodChange) { c.RemoveLabel("none") },
		"label changed back":        func(c *PodChange) { c.SetLabel("have", "2"); c.SetLabel("have", "1") },
		"label set and removed":     func(c *PodChange) { c.SetLabel("new", "1"); c.RemoveLabel("new") },
		"label removed and set":     func(c *PodChange) { c.RemoveLabel("have"); c.SetLabel("have", "1") },
		"annotation there":          func(c *PodChange) { c.SetAnnotation("have", "1") },
		"annotation not there":      func(c *PodChange) { c.RemoveAnnotation("none") },
		"finalizer there":           func(c *PodChange) { c.AddFinalizer("example.io/have") },
		"finalizer not there":       func(c *PodChange) { c.RemoveFinalizer("none") },
		"finalizer and back":        func(c *PodChange) { c.AddFinalizer("new"); c.RemoveFinalizer("new") },
		"finalizer removed and set": func(c *PodChange) { c.RemoveFinalizer("example.io/have"); c.AddFinalizer("example.io/have") },
		"image there":               func(c *PodChange) { c.SetImage("a", "a:v1") },
		"image and back":            func(c *PodChange) { c.SetImage("a", "a:v2"); c.SetImage("a", "a:v1") },
		"init container's image":    func(c *PodChange) { c.SetImage("proxy", "proxy:v2"); c.SetImage("proxy", "proxy:v1") },
		"init container's there": func(c *PodChange) {
			c.SetResources("proxy", cpu("1"))
			c.SetResources("proxy", corev1.ResourceRequirements{})
		},
		"unknown container":  func(c *PodChange) { c.SetImage("x", "x:v1"); c.SetResources("x", cpu("1")) },
		"resources there":    func(c *PodChange) { c.SetResources("a", cpu("1000m")) },
		"resources and back": func(c *PodChange) { c.SetResources("a", cpu("2")); c.SetResources("a", cpu("1")) },
		"condition there":    func(c *PodChange) { c.SetCondition(readinessGate, corev1.ConditionTrue, "", "") },
		"condition and back": func(c *PodChange) {
			c.SetCondition(readinessGate, corev1.ConditionFalse, "Why", "")
			c.SetCondition(readinessGate, corev1.ConditionTrue, "", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewPodChange(servingPod(), noon())
			change(c)
			assert.True(t, c.Empty())
			assert.Empty(t, c.Patches())
		})
	}
}

func TestReadersSeeTheChange(t *testing.T) {
	c := NewPodChange(servingPod(), noon())
	c.SetLabel("new", "1")
	c.RemoveLabel("have")
	c.SetAnnotation("empty", "")
	c.RemoveFinalizer("example.io/have")
	c.SetImage("a", "a:v2")
	assert.Equal(t, "1", c.Label("new"))
	_, ok := c.LookupLabel("have")
	assert.False(t, ok)
	_, ok = c.LookupAnnotation("empty")
	assert.True(t, ok)
	assert.Equal(t, "1", c.Annotation("have"))
	assert.False(t, c.HasFinalizer("example.io/have"))
	assert.Equal(t, "a:v2", c.Image("a"))
	assert.Equal(t, "b:v1", c.Image("b"))
	assert.Empty(t, c.Image("x"))
	assert.Equal(t, []string{"example.io/have"}, c.Pod.Finalizers, "the pod itself is read-only")
}

func TestWritesAndTheirOrder(t *testing.T) {
	closeGate := func(c *PodChange) { c.SetCondition(readinessGate, corev1.ConditionFalse, "Why", "") }
	label := func(c *PodChange) { c.SetLabel("new", "1") }
	image := func(c *PodChange) { c.SetImage("a", "a:v2") }
	resize := func(c *PodChange) { c.SetResources("a", cpu("2")) }
	finalizer := func(c *PodChange) { c.AddFinalizer("new") }
	for name, tt := range map[string]struct {
		changes []func(*PodChange)
		writes  []string
		meta    int // the write that carries the metadata, -1 for none
	}{
		"metadata alone":               {[]func(*PodChange){label}, []string{""}, 0},
		"metadata rides on conditions": {[]func(*PodChange){label, closeGate}, []string{"status"}, 0},
		"conditions alone":             {[]func(*PodChange){closeGate}, []string{"status"}, -1},
		"metadata rides on images":     {[]func(*PodChange){label, image, closeGate}, []string{"status", ""}, 1},
		"metadata follows a resize":    {[]func(*PodChange){label, resize}, []string{"resize", ""}, 1},
		"resize alone":                 {[]func(*PodChange){resize}, []string{"resize"}, -1},
		"finalizers need the pod":      {[]func(*PodChange){finalizer, closeGate, label}, []string{"status", ""}, 1},
		"all":                          {[]func(*PodChange){label, image, resize, closeGate}, []string{"status", "resize", ""}, 2},
		"resize out of service":        {[]func(*PodChange){label, resize, closeGate}, []string{"status", "resize", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewPodChange(servingPod(), noon())
			for _, change := range tt.changes {
				change(c)
			}
			var writes []string
			for i, patch := range c.Patches() {
				writes = append(writes, patch.Subresource)
				_, carries := patch.Body["metadata"]
				assert.Equal(t, i == tt.meta, carries, "metadata in write %d", i)
			}
			assert.Equal(t, tt.writes, writes)
		})
	}
}

func TestBodies(t *testing.T) {
	c := NewPodChange(servingPod(), noon())
	c.SetLabel("new", "1")
	c.RemoveLabel("have")
	c.AddFinalizer("new")
	c.RemoveFinalizer("example.io/have")
	c.SetImage("b", "b:v2")
	c.SetImage("proxy", "proxy:v2")
	c.SetResources("a", corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
	})
	c.SetResources("proxy", cpu("1"))
	patches := c.Patches()
	require.Len(t, patches, 2)
	assert.Equal(t, map[string]any{"spec": map[string]any{
		"initContainers": []any{map[string]any{"name": "proxy", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
		"containers": []any{map[string]any{"name": "a", "resources": map[string]any{
			"requests": map[string]any{"memory": "2Gi"}, "limits": map[string]any{"cpu": "1500m"},
		}}},
	}}, patches[0].Body, "only what differs")
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{
			"labels":     map[string]any{"new": "1", "have": nil},
			"finalizers": []any{"new"}, "$deleteFromPrimitiveList/finalizers": []any{"example.io/have"},
		},
		"spec": map[string]any{
			"initContainers": []any{map[string]any{"name": "proxy", "image": "proxy:v2"}},
			"containers":     []any{map[string]any{"name": "b", "image": "b:v2"}},
		},
	}, patches[1].Body)
	assert.Equal(t, "proxy:v2", c.Image("proxy"))
}

func conditionsOf(t *testing.T, c *PodChange) []any {
	t.Helper()
	patches := c.Patches()
	require.Equal(t, "status", patches[0].Subresource)
	return patches[0].Body["status"].(map[string]any)["conditions"].([]any)
}

// The kubelet alone writes Ready: what others write in its words it takes for its own, and sends its last one once more.
func TestReadyIsLeftToTheKubelet(t *testing.T) {
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		c := NewPodChange(servingPod(), noon())
		c.SetCondition(readinessGate, status, "Why", "")
		assert.Equal(t, []any{map[string]any{
			"type": string(readinessGate), "status": string(status), "reason": "Why", "message": nil, "lastTransitionTime": "2026-01-01T12:00:00Z",
		}}, conditionsOf(t, c))
	}
}

func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	c := NewPodChange(servingPod(), noon())
	c.SetCondition(readinessGate, corev1.ConditionTrue, "Other", "text")
	assert.Equal(t, "2026-01-01T11:00:00Z", conditionsOf(t, c)[0].(map[string]any)["lastTransitionTime"])
	c.SetCondition(readinessGate, corev1.ConditionUnknown, "Other", "text")
	assert.Equal(t, "2026-01-01T12:00:00Z", conditionsOf(t, c)[0].(map[string]any)["lastTransitionTime"])
	c.SetCondition("fresh", corev1.ConditionTrue, "", "")
	assert.Equal(t, noon(), c.Condition("fresh").LastTransitionTime)
	assert.Equal(t, corev1.ConditionUnknown, c.Condition(readinessGate).Status)
	assert.Nil(t, c.Condition("none"))
}

func TestAnUntouchedChangeAllocatesNothingElse(t *testing.T) {
	pod := servingPod()
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		c := NewPodChange(pod, noon())
		c.SetLabel("have", "1")
		_ = c.Empty()
	}), 1.0)
}
