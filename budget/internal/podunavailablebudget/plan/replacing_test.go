package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// Kubelets say that they know of a change before they end the container: until then it serves, and is about to stop.
func TestAChangeCountsUntilItsContainersHaveEnded(t *testing.T) {
	const grace = defaultGrace + endsWithin
	for name, tc := range map[string]struct {
		spec, runs string
		since      time.Duration // when it was first seen
		kept       bool
	}{
		"the container is ending":                 {"app:2", "docker.io/library/app:1", grace - time.Second, true},
		"it cannot take that long":                {"app:2", "docker.io/library/app:1", grace, false},
		"it is just seen":                         {"app:2", "docker.io/library/app:1", 0, true},
		"the new one runs":                        {"app:2", "docker.io/library/app:2", 0, false},
		"the new one runs without a tag":          {"app", "docker.io/library/app:latest", 0, false},
		"the new one runs, of another registry":   {"example.io/app:2", "example.io/app:2", 0, false},
		"the new one runs, named in full":         {"index.docker.io/app:2", "docker.io/library/app:2", 0, false},
		"the new one runs, told by its digest":    {"app@sha256:aa", "app:2", 0, false},
		"the one before runs, told by its digest": {"app@sha256:bb", "app:2", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			looked := gen.Pod("web-1", gen.Ready(gen.Epoch()))
			looked.Spec.Containers[0].Image = tc.spec
			looked.Status.ContainerStatuses[0].Image, looked.Status.ContainerStatuses[0].ImageID = tc.runs, "app@sha256:aa"
			b := budget(maxUnavailable("1"), granted(looked, upd, time.Hour))
			s := Snapshot{
				Budget: b, Pods: []*corev1.Pod{named("web-1"), named("web-2")}, Workloads: workload(2), Sights: seen(b, time.Minute),
				Looks: Looks{"web-1": NewLook(looked, looked.UID, looked)},
			}
			s.Replacements = Replacements{}.Next(&b.Status, s.Looks, now.Add(-tc.since)).Next(&b.Status, s.Looks, now)
			p := compute(t, s)
			assert.Equal(t, tc.kept, len(Grants(&p.Status)) > 0)
			assert.Equal(t, tc.kept, p.RequeueAfter > 0 && p.RequeueAfter <= askAgain)
		})
	}
}

// A burst of passes asks the server no more often about a pod whose container ends.
func TestTheServerIsAskedAgainAfterAWhile(t *testing.T) {
	looked := gen.Pod("web-1", gen.Ready(gen.Epoch()))
	looked.Spec.Containers[0].Image = "app:2"
	b := budget(maxUnavailable("1"), granted(looked, upd, time.Hour))
	s := Snapshot{Budget: b, Sights: seen(b, time.Minute), Now: now}
	cached := map[string]*corev1.Pod{"web-1": named("web-1")}
	assert.Equal(t, []string{"web-1"}, s.LookAt(cached))
	s.Replacements = s.Replacements.Next(&b.Status, Looks{"web-1": NewLook(looked, looked.UID, looked)}, now)
	assert.Empty(t, s.LookAt(cached))
	s.Replacements = s.Replacements.Next(&b.Status, Looks{}, now.Add(time.Second))
	s.Now = now.Add(askAgain)
	assert.Equal(t, []string{"web-1"}, s.LookAt(cached))
	assert.Positive(t, s.Replacements.left(Grants(&b.Status)[0], s.Now), "it is remembered until the server says otherwise")
	assert.Empty(t, s.Replacements.Next(&b.Status, Looks{"web-1": NewLook(nil, looked.UID, looked)}, s.Now))
}
