package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// The kubelet puts off what an update has written, and nothing else is waited for.
func TestPendingResizeSince(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	asks := func(cpu string) gen.PodOption {
		return gen.Change(func(o *corev1.Pod) {
			o.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		})
	}
	template := gen.Template(gen.Image("main", "app:1"), asks("2"))
	state := func(text string) gen.PodOption { return gen.Annotation(contract.InPlaceUpdateStateAnnotation, text) }
	batches := `{"revision":"web-x","updateTimestamp":"2026-01-02T11:00:00Z","lastContainerStatuses":null,"updateResources":true,` +
		`"containerBatchesRecord":[{"timestamp":"2026-01-02T12:00:00Z","containers":["main"]}]}`
	failed := gen.Change(func(o *corev1.Pod) {
		said := podstate.Condition(o, corev1.PodResizePending)
		said.Type, said.Reason = corev1.PodResizeInProgress, corev1.PodReasonError
	})
	for name, tt := range map[string]struct {
		change []gen.PodOption
		off    bool
		want   time.Time
	}{
		"put off":                           {want: since},
		"since its batch was written":       {change: []gen.PodOption{state(batches)}, want: since},
		"failed":                            {change: []gen.PodOption{failed}, want: since},
		"carried out":                       {change: []gen.PodOption{failed, gen.Change(func(o *corev1.Pod) { podstate.Condition(o, corev1.PodResizeInProgress).Reason = "" })}},
		"given":                             {change: []gen.PodOption{gen.AwaitsResize(since, "2")}},
		"under way":                         {change: []gen.PodOption{gen.Condition(corev1.PodResizePending, corev1.ConditionFalse, since)}},
		"somebody else asks for more":       {change: []gen.PodOption{asks("3")}},
		"an update without a batch":         {change: []gen.PodOption{state(`{"revision":"web-x","updateTimestamp":"2026-01-02T12:00:00Z","lastContainerStatuses":null,"updateResources":true}`)}},
		"no update":                         {change: []gen.PodOption{state("")}},
		"an update of images":               {change: []gen.PodOption{state(`{"revision":"web-x","updateTimestamp":"2026-01-02T12:00:00Z","lastContainerStatuses":null}`)}},
		"a record that nobody can read":     {change: []gen.PodOption{state("{")}},
		"one in its grace period":           {change: []gen.PodOption{gen.Annotation(contract.InPlaceUpdateGraceAnnotation, `{"revision":"web-x","graceSeconds":9}`)}},
		"a status that is about older spec": {change: []gen.PodOption{gen.Change(func(o *corev1.Pod) { o.Generation, o.Status.ObservedGeneration = 3, 2 })}},
		"where pods are not resized":        {off: true},
	} {
		t.Run(name, func(t *testing.T) {
			options := append([]gen.PodOption{gen.FromTemplate(template), gen.AwaitsResize(since, "1")}, tt.change...)
			got := PendingResizeSince(gen.Pod("web-1", options...), &template, Options{Resize: !tt.off})
			assert.True(t, tt.want.Equal(got), "%v", got)
		})
	}
}
