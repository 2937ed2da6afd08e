package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// Kubelets say that they know of a change before they end the container: until then it serves, and is about to stop.
func TestAChangeCountsUntilItsContainersHaveEnded(t *testing.T) {
	const grace = defaultGrace + endsWithin
	for name, tc := range map[string]struct {
		spec, runs string
		restarts   int32         // since the change was granted
		since      time.Duration // when it was first seen
		kept       bool
	}{
		"the container is ending":                 {"app:2", "docker.io/library/app:1", 0, grace - time.Second, true},
		"it cannot take that long":                {"app:2", "docker.io/library/app:1", 0, grace, false},
		"it is just seen":                         {"app:2", "docker.io/library/app:1", 0, 0, true},
		"the new one runs":                        {"app:2", "docker.io/library/app:2", 1, 0, false},
		"the new one runs without a tag":          {"app", "docker.io/library/app:latest", 1, 0, false},
		"the new one runs, of another registry":   {"example.io/app:2", "example.io/app:2", 1, 0, false},
		"the new one runs, named in full":         {"index.docker.io/app:2", "docker.io/library/app:2", 1, 0, false},
		"the new one runs, told by its digest":    {"app@sha256:aa", "app:2", 1, 0, false},
		"the one before runs, told by its digest": {"app@sha256:bb", "app:2", 0, 0, true},
		"the new one runs under another name":     {"app:2", "docker.io/library/app:stable", 1, 0, false},
		"it has run under another name":           {"app:2", "docker.io/library/app:stable", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			looked := gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Restarts(3))
			b := budget(maxUnavailable("1"), granted(looked, upd, time.Hour))
			before := asked(b, looked)
			looked = gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Restarts(3+tc.restarts))
			looked.Spec.Containers[0].Image = tc.spec
			looked.Status.ContainerStatuses[0].Image, looked.Status.ContainerStatuses[0].ImageID = tc.runs, "app@sha256:aa"
			s := Snapshot{
				Budget: b, Pods: []*corev1.Pod{named("web-1"), named("web-2")}, Workloads: workload(2), Sights: seen(b, time.Minute),
				Looks: Looks{"web-1": NewLook(looked, looked.UID, looked)},
			}
			s.Replacements = before.Next(&b.Status, s.Looks, now.Add(-tc.since)).Next(&b.Status, s.Looks, now)
			p := compute(t, s)
			assert.Equal(t, tc.kept, len(disruption.Grants(&p.Status)) > 0)
			assert.Equal(t, tc.kept, p.RequeueAfter > 0 && p.RequeueAfter <= askAgain)
		})
	}
}

// asked is what the server has said when the grants were new.
func asked(b *v1beta1.PodUnavailableBudget, pod *corev1.Pod) Replacements {
	return Replacements{}.Next(&b.Status, Looks{pod.Name: NewLook(pod, pod.UID, pod)}, now)
}

// A container that has restarted proves nothing of another one, nor of a change that was granted afterwards, nor while its node
// does not know of the change.
func TestARestartEndsItsOwnChangeOnly(t *testing.T) {
	pod := func(restarts, sidecar int32, options ...gen.PodOption) *corev1.Pod {
		pod := gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Restarts(restarts))
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "sidecar", Image: "sidecar:1", RestartCount: sidecar})
		pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses[0].Image = "app:2", "app:stable"
		for _, o := range options {
			o(pod)
		}
		return pod
	}
	unseen := func(pod *corev1.Pod) { pod.Generation, pod.Status.ObservedGeneration = 3, 2 }
	b := budget(maxUnavailable("1"), granted(pod(0, 0), upd, time.Hour))
	next := func(r Replacements, b *v1beta1.PodUnavailableBudget, pod *corev1.Pod) Replacements {
		return r.Next(&b.Status, Looks{pod.Name: NewLook(pod, pod.UID, pod)}, now)
	}
	left := func(r Replacements, b *v1beta1.PodUnavailableBudget) time.Duration {
		return r.left(disruption.Grants(&b.Status)[0], now)
	}

	first := asked(b, pod(0, 0))
	assert.Zero(t, left(next(first, b, pod(1, 0)), b))
	assert.Positive(t, left(next(first, b, pod(0, 1)), b), "the other container has restarted")
	behind := next(first, b, pod(1, 0, unseen))
	assert.Positive(t, left(next(behind, b, pod(1, 0)), b), "it has restarted as it was")
	assert.Zero(t, left(next(behind, b, pod(2, 0)), b))

	again := b.DeepCopy()
	again.Status = *disruption.Record(&b.Status, pod(1, 0), upd, now)
	second := next(next(first, b, pod(1, 0)), again, pod(1, 0))
	assert.Positive(t, left(next(second, again, pod(1, 0)), again), "it has restarted for the change before")
	assert.Zero(t, left(next(second, again, pod(2, 0)), again))
}

// A burst of passes asks the server no more often about a pod whose container ends.
func TestTheServerIsAskedAgainAfterAWhile(t *testing.T) {
	looked := gen.Pod("web-1", gen.Ready(gen.Epoch()))
	looked.Spec.Containers[0].Image = "app:2"
	b := budget(maxUnavailable("1"), granted(looked, upd, time.Hour))
	s := Snapshot{Budget: b, Sights: seen(b, 0), Now: now}
	cached := map[string]*corev1.Pod{"web-1": named("web-1")}
	looks := Looks{"web-1": NewLook(looked, looked.UID, looked)}
	assert.Equal(t, []string{"web-1"}, s.LookAt(cached), "the change is new")
	s.Replacements = s.Replacements.Next(&b.Status, looks, now)
	assert.Empty(t, s.LookAt(cached))
	s.Sights, s.Now = seen(b, time.Minute), now.Add(askAgain)
	assert.Equal(t, []string{"web-1"}, s.LookAt(cached), "its grant would end")
	s.Replacements = s.Replacements.Next(&b.Status, looks, s.Now)
	assert.Empty(t, s.LookAt(cached))
	s.Replacements = s.Replacements.Next(&b.Status, Looks{}, s.Now.Add(time.Second))
	s.Now = s.Now.Add(askAgain)
	assert.Equal(t, []string{"web-1"}, s.LookAt(cached))
	assert.Positive(t, s.Replacements.left(disruption.Grants(&b.Status)[0], s.Now), "it is remembered until the server says otherwise")
	assert.Empty(t, s.Replacements.Next(&b.Status, Looks{"web-1": NewLook(nil, looked.UID, looked)}, s.Now))
}

// A new leader, which knows nothing of the pod from before, waits for its containers as long as they can take. So does one
// that has seen the pod before the change and has missed that its node was behind.
func TestEachGenerationHasItsOwnTimeToEnd(t *testing.T) {
	old := gen.Pod("web-1", gen.Ready(gen.Epoch()))
	changed := old.DeepCopy()
	changed.Generation, changed.Status.ObservedGeneration = 2, 2
	changed.Spec.Containers[0].Image = "app:2"
	changed.Status.ContainerStatuses[0].Image = "app:stable"
	b := budget(maxUnavailable("1"), granted(old, upd, time.Hour))
	grant := disruption.Grants(&b.Status)[0]
	look := func(pod *corev1.Pod) Looks { return Looks{"web-1": NewLook(pod, pod.UID, pod)} }

	leader := Replacements{}.Next(&b.Status, look(changed), now)
	assert.Equal(t, defaultGrace+endsWithin, leader.left(grant, now))

	alias := old.DeepCopy()
	alias.Status.ContainerStatuses[0].Image = "app:stable"
	before := Replacements{}.Next(&b.Status, look(alias), now)
	later := now.Add(time.Minute)
	assert.Equal(t, defaultGrace+endsWithin, before.Next(&b.Status, look(changed), later).left(grant, later))
}
