package meter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// Meter counts for one controller. It is safe for concurrent use.
type Meter struct {
	series series

	mu    sync.Mutex
	known memory.Objects[*record]
}

// record is the memory of a workload.
type record struct {
	waitsFor string              // reason, empty for nothing
	trouble  map[trouble]int     // series of pods in trouble
	starting map[types.UID]start // pods that have not been ready yet
}

// start is the start of a pod.
type start struct {
	created time.Time
	told    bool // whether an observation has come since; the one of the pass that created the pod is without it
}

// New makes the meter of a controller. Several may share one registerer.
func New(registerer prometheus.Registerer, controller string) (*Meter, error) {
	s, err := newSeries(registerer, controller)
	if err != nil {
		return nil, err
	}
	m := &Meter{series: s}
	m.known.Ended = m.ended
	return m, nil
}

// Planned counts a plan that took so long to make.
func (m *Meter) Planned(took time.Duration) { m.series.planning.Observe(took.Seconds()) }

// Executed counts the outcomes of the plan of a workload.
func (m *Meter) Executed(workload memory.Key, outcomes []progress.Outcome, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range outcomes {
		o := &outcomes[i]
		pod, isPod := o.Action.Object.(*corev1.Pod)
		if !isPod || o.State != progress.Done {
			continue
		}
		switch {
		case o.Action.Verb == action.Create && o.Object != nil:
			m.of(workload).starting[o.Object.GetUID()] = start{created: now}
		case o.Action.Reason == podupdate.DeleteToRecreate:
			m.series.recreated.Inc()
		case o.Action.Verb == action.UpdateInPlace && podstate.ShortHash(pod.Labels[revisionLabel]) != o.Action.Revision:
			m.series.inPlace.Inc() // further containers of the pod follow under its new revision
		}
	}
}

// Observation has the findings of a pass about a workload.
type Observation struct {
	// Pods are all pods of the workload.
	Pods []*corev1.Pod
	// Update is the short hash of the update revision.
	Update string
	// Wanted is how many pods the workload should have, Available how many are available.
	Wanted, Available int32
	// MaxUnavailable is how many pods an update may have out of service.
	MaxUnavailable int32
	// WaitsFor is the reason why the workload is not as its spec wants it, empty where it is.
	WaitsFor string
}

// Observed sets the series of a workload.
func (m *Meter) Observed(workload memory.Key, seen Observation, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(workload)
	m.series.unavailable.WithLabelValues(workload.Namespace, workload.Name).Set(float64(max(seen.Wanted-seen.Available, 0)))
	m.series.maxUnavailable.WithLabelValues(workload.Namespace, workload.Name).Set(float64(seen.MaxUnavailable))
	m.waitsFor(r, seen.WaitsFor)
	m.troubles(workload.NamespacedName, r, troublesOf(seen))
	m.started(r, seen.Pods, now)
}

// Forget ends the series of a workload that is gone.
func (m *Meter) Forget(workload types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Forget(workload)
}

// ended ends the series of a workload.
func (m *Meter) ended(workload memory.Key, r *record) {
	m.waitsFor(r, "")
	m.troubles(workload.NamespacedName, r, nil)
	m.series.unavailable.DeleteLabelValues(workload.Namespace, workload.Name)
	m.series.maxUnavailable.DeleteLabelValues(workload.Namespace, workload.Name)
}

func (m *Meter) of(workload memory.Key) *record {
	r, ok := m.known.Get(workload)
	if !ok {
		r = &record{starting: map[types.UID]start{}}
		m.known.Set(workload, r)
	}
	return r
}

func (m *Meter) waitsFor(r *record, reason string) {
	if r.waitsFor == reason {
		return
	}
	if r.waitsFor != "" {
		m.series.waiting.WithLabelValues(r.waitsFor).Dec()
	}
	if reason != "" {
		m.series.waiting.WithLabelValues(reason).Inc()
	}
	r.waitsFor = reason
}

func (m *Meter) troubles(workload types.NamespacedName, r *record, found map[trouble]int) {
	for t := range r.trouble {
		if found[t] == 0 {
			m.series.troubled.DeleteLabelValues(workload.Namespace, workload.Name, t.reason, t.revision)
		}
	}
	for t, pods := range found {
		m.series.troubled.WithLabelValues(workload.Namespace, workload.Name, t.reason, t.revision).Set(float64(pods))
	}
	r.trouble = found
}

// started measures the pods that have become ready, and drops those that are gone.
func (m *Meter) started(r *record, pods []*corev1.Pod, now time.Time) {
	if len(r.starting) == 0 {
		return
	}
	left := map[types.UID]start{}
	for _, pod := range pods {
		s, starting := r.starting[pod.UID]
		if !starting {
			continue
		}
		delete(r.starting, pod.UID)
		if pod.DeletionTimestamp != nil {
			continue
		}
		if ready := podstate.Condition(pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
			m.series.starts.Observe(now.Sub(s.created).Seconds())
			continue
		}
		left[pod.UID] = start{s.created, true}
	}
	for uid, s := range r.starting {
		if !s.told {
			left[uid] = start{s.created, true}
		}
	}
	r.starting = left
}
