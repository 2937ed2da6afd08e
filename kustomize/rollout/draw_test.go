package rollout

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// set returns a CloneSet of five pods in the middle of an update, changed as a test wants it.
func set(change func(s *workload.Set)) *workload.Set {
	s := &workload.Set{
		Kind: workload.Kinds()[0], Name: "web", Generation: 2, Observed: 2,
		Wanted: 5, Pods: 5, Ready: 5, Available: 4, Updated: 2, Target: 5,
		UpdateRevision: "web-b", CurrentRevision: "web-a",
	}
	change(s)
	return s
}

func pod(name, revision string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"controller-revision-hash": revision}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func ending(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

func held(p *corev1.Pod) { ready(p); p.Labels["lifecycle.apps.kruise.io/state"] = "PreparingUpdate" }

func broken(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
	}}}
}

func pods() []*corev1.Pod {
	return []*corev1.Pod{
		pod("web-10", "web-b"), pod("web-2", "b", ready), pod("web-3", "web-b", broken),
		pod("web-4", "web-a", held), pod("web-5", "web-a", ready), pod("web-6", "web-z", ending),
	}
}

func TestARolloutIsDrawnInCells(t *testing.T) {
	assert.Equal(t, []string{
		"CloneSet/web Progressing: 2 of 5 pods updated, 4 of 5 available",
		"  web-b update  ●!○",
		"  web-a current ◐●",
		"  web-z older   ×",
		"  " + legend,
	}, draw(set(func(*workload.Set) {}), pods(), 80))
}

func TestDrawingsFitTheTerminal(t *testing.T) {
	var many []*corev1.Pod
	for range 30 {
		many = append(many, pod("web-x", "web-b", ready))
	}
	lines := draw(set(func(s *workload.Set) { s.CurrentRevision = "" }), many, 28)
	assert.Equal(t, []string{
		"CloneSet/web Progressing: 2…",
		"  web-b update  " + strings.Repeat("●", 12),
		"                " + strings.Repeat("●", 12),
		"                " + strings.Repeat("●", 6),
		"  ● ready  ○ starting  ◐ up…",
	}, lines)
}

func TestARolloutIsToldInALine(t *testing.T) {
	s := set(func(*workload.Set) {})
	assert.Equal(t, "web-b (update) 1 ready, 1 starting, 1 failing; web-a (current) 1 ready, 1 updating; web-z (older) 1 terminating", describe(s, pods()))
	assert.Equal(t, "no pods", describe(s, nil))
}

// A terminal shows the newest drawing only; anything else gets a line for each change.
func TestDrawingsReplaceEachOther(t *testing.T) {
	s := set(func(*workload.Set) {})
	var out bytes.Buffer
	terminal := &Screen{out: &out, width: func() int { return 80 }}
	terminal.Show(s, pods())
	first := out.String()
	out.Reset()
	terminal.Show(s, pods()[:2])
	assert.True(t, strings.HasPrefix(first, "\r\x1b[J"), "the first drawing moves nowhere")
	assert.True(t, strings.HasPrefix(out.String(), "\x1b[5A\r\x1b[J"), "the next one begins where the first began")

	out.Reset()
	file := NewScreen(&out)
	file.Show(s, pods()[:2])
	file.Show(s, pods()[:2])
	file.Show(s, nil)
	assert.Equal(t, "CloneSet/web Progressing: web-b (update) 1 ready, 1 starting\nCloneSet/web Progressing: no pods\n", out.String())
}
