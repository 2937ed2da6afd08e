package meter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

var (
	web = memory.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "web"}
	api = memory.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "api"}, UID: "api"}
)

// world is a meter with its metrics.
type world struct {
	*Meter
	registry *prometheus.Registry
}

func newWorld(t *testing.T) world {
	t.Helper()
	r := prometheus.NewRegistry()
	m, err := New(r, "cloneset")
	require.NoError(t, err)
	return world{m, r}
}

// has returns all series of the metric with their values, of a histogram with number and sum of what was observed.
func (w world) has(t *testing.T, metric string) (all []string) {
	t.Helper()
	families, err := w.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "controller" {
					labels = append(labels, l.GetValue())
				}
			}
			value := fmt.Sprint(cmp.Or(m.GetGauge().GetValue(), m.GetCounter().GetValue()))
			if h := m.GetHistogram(); h != nil {
				value = fmt.Sprintf("%d of %gs", h.GetSampleCount(), h.GetSampleSum())
			}
			all = append(all, strings.TrimSpace(strings.Join(labels, " ")+" "+value))
		}
	}
	slices.Sort(all)
	return all
}

func outcome(verb action.Verb, reason, revision string, pod *corev1.Pod) progress.Outcome {
	return progress.Outcome{Action: &action.Action{Verb: verb, Reason: reason, Revision: revision, Object: pod}, State: progress.Done, Object: pod}
}

func TestUpdatesAreCountedOnceForEachPod(t *testing.T) {
	w := newWorld(t)
	pod, claim := gen.Pod("web-1", gen.Revision("web-old")), gen.Claim("data", "1Gi")
	begun := outcome(action.UpdateInPlace, "Update", "new", pod)
	further := outcome(action.UpdateInPlace, "Refresh", "new", gen.Pod("web-1", gen.Revision("web-new")))
	refused := outcome(action.Delete, podupdate.DeleteToRecreate, "", pod)
	refused.State = progress.Blocked
	ofClaim := outcome(action.Delete, podupdate.DeleteToRecreate, "", pod)
	ofClaim.Action.Object = &claim
	w.Executed(web, []progress.Outcome{
		begun, further, refused, ofClaim,
		outcome(action.Delete, podupdate.DeleteToRecreate, "", pod),
		outcome(action.PatchMetadata, podupdate.DeleteToRecreate, "", pod), // its hook holds it
		outcome(action.Delete, "ScaleIn", "", pod),
	}, gen.Epoch())
	assert.Equal(t, []string{"in_place 1", "recreate 2"}, w.has(t, "flotilla_pod_updates_total"))
}

func TestAPodStartsOnce(t *testing.T) {
	w, born := newWorld(t), gen.Epoch()
	at := func(seconds int) time.Time { return born.Add(time.Duration(seconds) * time.Second) }
	w.Executed(web, []progress.Outcome{
		outcome(action.Create, "ScaleOut", "", gen.Pod("a")), outcome(action.Create, "ScaleOut", "", gen.Pod("b")), outcome(action.Create, "ScaleOut", "", gen.Pod("c")),
	}, born)
	w.Observed(web, Observation{Pods: []*corev1.Pod{gen.Pod("found")}}, at(1)) // by the pass that has created them
	ready, other := gen.Pod("a", gen.Ready(at(2))), gen.Pod("found", gen.Ready(at(2)))
	w.Observed(web, Observation{Pods: []*corev1.Pod{ready, other, gen.Pod("b"), gen.Pod("c")}}, at(3))
	assert.Equal(t, []string{"1 of 3s"}, w.has(t, "flotilla_pod_start_seconds"))

	ended := gen.Pod("c", gen.Ready(at(4)), gen.Terminating())
	w.Observed(web, Observation{Pods: []*corev1.Pod{gen.Pod("a", gen.NotReady(at(4))), gen.Pod("b"), ended}}, at(5))
	w.Observed(web, Observation{Pods: []*corev1.Pod{ready, gen.Pod("b", gen.Ready(at(6))), gen.Pod("c", gen.Ready(at(6)))}}, at(7))
	assert.Equal(t, []string{"2 of 10s"}, w.has(t, "flotilla_pod_start_seconds"))

	w.Executed(web, []progress.Outcome{outcome(action.Create, "ScaleOut", "", gen.Pod("gone"))}, at(8))
	w.Observed(web, Observation{}, at(8))
	w.Observed(web, Observation{}, at(9))
	w.Observed(web, Observation{Pods: []*corev1.Pod{gen.Pod("gone", gen.Ready(at(10)))}}, at(10))
	assert.Equal(t, []string{"2 of 10s"}, w.has(t, "flotilla_pod_start_seconds"), "nothing is kept of what is gone")
}

func TestUnavailablePodsStandBesideWhatIsAllowed(t *testing.T) {
	w := newWorld(t)
	w.Observed(web, Observation{Wanted: 5, Available: 3, MaxUnavailable: 1}, gen.Epoch())
	w.Observed(api, Observation{Wanted: 2, Available: 3, MaxUnavailable: 2}, gen.Epoch())
	assert.Equal(t, []string{"api shop 0", "web shop 2"}, w.has(t, "flotilla_workload_unavailable_pods"))
	assert.Equal(t, []string{"api shop 2", "web shop 1"}, w.has(t, "flotilla_workload_max_unavailable_pods"))
}

func TestWorkloadsAreCountedByWhatTheyWaitFor(t *testing.T) {
	w := newWorld(t)
	w.Observed(web, Observation{WaitsFor: "Progressing"}, gen.Epoch())
	w.Observed(api, Observation{WaitsFor: "Progressing"}, gen.Epoch())
	w.Observed(api, Observation{WaitsFor: "Progressing"}, gen.Epoch())
	assert.Equal(t, []string{"Progressing 2"}, w.has(t, "flotilla_waiting_workloads"))
	w.Observed(web, Observation{WaitsFor: "BlockedByBudget"}, gen.Epoch())
	w.Observed(api, Observation{}, gen.Epoch())
	assert.Equal(t, []string{"BlockedByBudget 1", "Progressing 0"}, w.has(t, "flotilla_waiting_workloads"))
}

func TestPodsInTroubleAreCountedByWhatIsWrong(t *testing.T) {
	w, now := newWorld(t), gen.Epoch()
	updated := gen.Revision("web-new")
	w.Observed(web, Observation{Update: "new", Pods: []*corev1.Pod{
		gen.Pod("a", updated, gen.Waiting("ImagePullBackOff", now)), gen.Pod("b", updated, gen.Waiting("ErrImagePull", now)),
		gen.Pod("c", gen.Revision("web-old"), gen.Waiting("CrashLoopBackOff", now)), gen.Pod("d", updated, gen.Waiting("RuntimeSays42", now)),
		gen.Pod("e", updated, gen.Ready(now)),
	}}, now)
	assert.Equal(t, []string{"web shop CrashLoopBackOff older 1", "web shop ErrImagePull update 2", "web shop Other update 1"}, w.has(t, "flotilla_workload_troubled_pods"))

	w.Observed(web, Observation{Update: "new", Pods: []*corev1.Pod{gen.Pod("b", updated, gen.Waiting("ErrImagePull", now))}}, now)
	assert.Equal(t, []string{"web shop ErrImagePull update 1"}, w.has(t, "flotilla_workload_troubled_pods"))
}

func TestTheSeriesOfAWorkloadEndWithIt(t *testing.T) {
	w, now := newWorld(t), gen.Epoch()
	seen := Observation{Wanted: 1, MaxUnavailable: 1, WaitsFor: "Progressing", Pods: []*corev1.Pod{gen.Pod("a", gen.Waiting("ErrImagePull", now))}}
	w.Observed(web, seen, now)
	w.Observed(api, seen, now)
	w.Forget(web.NamespacedName)
	w.Forget(types.NamespacedName{Name: "never seen"})
	assert.Equal(t, []string{"api shop 1"}, w.has(t, "flotilla_workload_unavailable_pods"))
	assert.Equal(t, []string{"api shop 1"}, w.has(t, "flotilla_workload_max_unavailable_pods"))
	assert.Equal(t, []string{"api shop ErrImagePull older 1"}, w.has(t, "flotilla_workload_troubled_pods"))
	assert.Equal(t, []string{"Progressing 1"}, w.has(t, "flotilla_waiting_workloads"))
	_, known := w.known.Get(web)
	assert.False(t, known)
}

func TestControllersOfOneProcessShareTheirMetrics(t *testing.T) {
	w := newWorld(t)
	other, err := New(w.registry, "other")
	require.NoError(t, err)
	w.Planned(time.Second)
	other.Planned(2 * time.Second)
	assert.Equal(t, []string{"1 of 1s", "1 of 2s"}, w.has(t, "flotilla_plan_seconds"))
	again, err := New(w.registry, "cloneset")
	require.NoError(t, err)
	again.Planned(time.Second)
	assert.Equal(t, []string{"1 of 2s", "2 of 2s"}, w.has(t, "flotilla_plan_seconds"))
}
