package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// world is a spread with its pods on a server, a workload that creates and deletes pods, two replicas of the webhook and
// the controller. Everybody but the server sees the past, as late as maxLag; answers get lost; the controller may be
// killed between any two writes.
type world struct {
	*testing.T
	*rand.Rand
	at       time.Time
	spread   *v1beta1.WorkloadSpread // its resourceVersion counts writes
	pods     map[string]*corev1.Pod
	history  []state
	replicas []*replica
	seen     int // of the history, by the controller
	onWay    []creation
	versions []string
	names    int
	writes   int
	overflow int             // pods that were created without a subset
	adopted  map[string]bool // pods that came into a subset later
	moved    int             // pods that were deleted because they could not be scheduled
}

// state is what was to see at a moment.
type state struct {
	at     time.Time
	spread *v1beta1.WorkloadSpread
	pods   map[string]*corev1.Pod
}

// replica is one of the webhook's. last is what the server answered to its last write.
type replica struct {
	seen int
	last *v1beta1.WorkloadSpread
}

// creation is a pod between admission and the server's database.
type creation struct {
	pod *corev1.Pod
	due time.Time
}

const (
	maxLag     = 4 * time.Second
	maxOnWay   = 15 * time.Second
	worldSteps = 250
)

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	w := &world{T: t, Rand: r, at: gen.Epoch(), pods: map[string]*corev1.Pod{}, adopted: map[string]bool{}, replicas: []*replica{{}, {}}, versions: []string{v1beta1.VersionIgnored}}
	w.spread = given([]string{"a=3 b=2 c", "a=1", "a=0 b=4", "a=2 b=2 c=2", "a=50% b"}[r.IntN(5)])
	w.spread.ResourceVersion = "0"
	if r.IntN(2) == 0 {
		adaptive(w.spread, 5)
	}
	if r.IntN(3) == 0 {
		w.versions = []string{"old", "new"}
	}
	w.record()
	return w
}

func (w *world) versioned() subsets.Versioned {
	if len(w.versions) > 1 {
		return replicaSets()
	}
	return nil
}

func (w *world) limits() []int32 { return subsets.Limits(w.spread, new(int32(6))) }

func (w *world) record() {
	w.history = append(w.history, state{w.at, w.spread, maps.Clone(w.pods)})
}

// view moves a reader forward in the history: never back, and never behind the largest lag.
func (w *world) view(seen *int) state {
	for *seen < len(w.history)-1 && (w.at.Sub(w.history[*seen+1].at) >= maxLag || w.IntN(3) > 0) {
		*seen++
	}
	return w.history[*seen]
}

// write stores a status that was made from a version of the spread, and reports whether that was still the version.
func (w *world) write(made *v1beta1.WorkloadSpread) bool {
	if made.ResourceVersion != w.spread.ResourceVersion {
		return false
	}
	stored := made.DeepCopy()
	w.writes++
	stored.ResourceVersion = fmt.Sprint(w.writes)
	w.spread = stored
	w.record()
	return true
}

// serve is what a replica of the webhook does: it counts from what it knows best, and reads the server after a conflict.
func (w *world) serve(r *replica, apply func(*subsets.Books)) {
	known := w.view(&r.seen).spread
	if r.last != nil && number(r.last) > number(known) {
		known = r.last
	}
	for {
		made := known.DeepCopy()
		b := subsets.Open(made, w.limits())
		apply(b)
		if !b.Close() {
			return
		}
		if w.write(made) {
			if w.IntN(10) == 0 { // the answer is lost: the same again
				known = w.spread
				continue
			}
			r.last = w.spread
			return
		}
		known = w.spread
	}
}

func number(s *v1beta1.WorkloadSpread) (n int) {
	_, _ = fmt.Sscan(s.ResourceVersion, &n)
	return n
}

// create admits some pods at once, as one write. Some of them are refused afterwards, the others appear later.
func (w *world) create() {
	r := w.replicas[w.IntN(len(w.replicas))]
	pods := make([]*corev1.Pod, 1+w.IntN(4))
	ids := make([]string, len(pods))
	for i := range pods {
		w.names++
		name := fmt.Sprintf("p%d", w.names)
		pods[i] = gen.Pod(name, hash(w.versions[w.IntN(len(w.versions))]))
		ids[i] = "uid-" + name
		if w.IntN(3) == 0 {
			ids[i] = name
		}
	}
	chosen := make([]int, len(pods))
	w.serve(r, func(b *subsets.Books) {
		for i, pod := range pods {
			chosen[i] = b.Ledger(subsets.VersionOf(pod, w.versioned())).Admit(ids[i], metav1.NewTime(w.at), w.gone)
		}
	})
	for i, pod := range pods {
		if chosen[i] != subsets.None {
			m := v1beta1.Match{Name: w.spread.Name, Subset: w.spread.Spec.Subsets[chosen[i]].Name}
			if ids[i] != pod.Name {
				m.UID = ids[i]
			}
			require.NoError(w, subsets.Inject(pod, &w.spread.Spec.Subsets[chosen[i]], m, nil))
		} else {
			w.overflow++
		}
		if w.IntN(6) > 0 { // else it is refused after admission
			w.onWay = append(w.onWay, creation{pod, w.at.Add(time.Duration(w.Int64N(int64(maxOnWay))))})
		}
	}
}

func (w *world) gone(name string) bool {
	pod := w.pods[name]
	return pod == nil || pod.DeletionTimestamp != nil
}

// appear stores the pods whose time has come.
func (w *world) appear() {
	w.onWay = slices.DeleteFunc(w.onWay, func(c creation) bool {
		if c.due.After(w.at) {
			return false
		}
		c.pod.CreationTimestamp = metav1.NewTime(w.at)
		c.pod.Status.Phase = corev1.PodPending
		w.put(c.pod)
		return true
	})
}

func (w *world) put(pod *corev1.Pod) {
	w.pods[pod.Name] = pod
	w.record()
}

func (w *world) some() *corev1.Pod {
	names := slices.Sorted(maps.Keys(w.pods))
	if len(names) == 0 {
		return nil
	}
	return w.pods[names[w.IntN(len(names))]]
}

// remove asks to delete a pod: the webhook notes it, unless that is skipped as for an eviction, and sometimes the
// deletion is refused after that.
func (w *world) remove() {
	pod := w.some()
	if pod == nil {
		return
	}
	if pod.DeletionTimestamp != nil {
		delete(w.pods, pod.Name)
		w.record()
		return
	}
	if m, ok := subsets.MatchOf(pod); ok && w.IntN(4) > 0 && podstate.IsActive(pod) {
		w.serve(w.replicas[w.IntN(len(w.replicas))], func(b *subsets.Books) {
			if !w.gone(pod.Name) {
				b.Ledger(subsets.VersionOf(pod, w.versioned())).Leave(m.Subset, pod.Name, m.UID, metav1.NewTime(w.at))
			}
		})
	}
	if w.IntN(4) > 0 {
		w.terminate(pod)
	}
}

func (w *world) terminate(pod *corev1.Pod) {
	after := pod.DeepCopy()
	after.DeletionTimestamp = new(metav1.NewTime(w.at))
	w.put(after)
}

// kubelet moves a pod on: to a node, to its end, or not.
func (w *world) kubelet() {
	pod := w.some()
	if pod == nil || !podstate.IsActive(pod) {
		return
	}
	after := pod.DeepCopy()
	switch n := w.IntN(4); {
	case n == 0 && after.Spec.NodeName == "": // the scheduler has done with the others
		gen.Unschedulable(corev1.PodReasonUnschedulable, w.at)(after)
	case n == 1:
		after.Status.Phase = corev1.PodSucceeded
	default:
		if after.Spec.NodeName == "" {
			gen.OnNode([]string{"node-a", "node-b", "node-c"}[w.IntN(3)])(after)
		}
		gen.Ready(w.at)(after)
	}
	w.put(after)
}

// control is one pass of the controller over what it sees. It may be killed after any of its writes.
func (w *world) control(calm bool) (wrote int) {
	view := w.view(&w.seen)
	if calm {
		w.seen = len(w.history) - 1
		view = w.history[w.seen]
	}
	s := snapshot(view.spread)
	for _, name := range slices.Sorted(maps.Keys(view.pods)) {
		s.Pods = append(s.Pods, view.pods[name])
	}
	s.Now, s.Target = w.at, Target{HasCosts: true, Replicas: new(int32(6)), Versioned: w.versioned(), Latest: w.versions[len(w.versions)-1]}
	p := Compute(s)
	left := w.IntN(20) // writes until it is killed
	for _, step := range p.Steps {
		for i := range step.Actions {
			if left--; left < 0 && !calm {
				return wrote
			}
			wrote += w.execute(&step.Actions[i])
		}
	}
	made := view.spread.DeepCopy()
	made.Status = *p.Status
	if assert.ObjectsAreEqual(canonical(made.Status), canonical(view.spread.Status)) {
		return wrote
	}
	if w.write(made) {
		return wrote + 1
	}
	// Somebody else was first: the same pods, and the newest status.
	if status, _ := p.Renew(w.spread); status != nil {
		made = w.spread.DeepCopy()
		made.Status = *status
		w.write(made)
		wrote++
	}
	return wrote
}

// canonical is a status as the server shows it.
func canonical(s v1beta1.WorkloadSpreadStatus) string {
	text := count(s.SubsetStatuses)
	for _, version := range slices.Sorted(maps.Keys(s.VersionedSubsetStatuses)) {
		text += "; " + version + ": " + count(s.VersionedSubsetStatuses[version])
		for _, e := range s.VersionedSubsetStatuses[version] {
			text += fmt.Sprint(slices.Sorted(maps.Keys(e.CreatingPods)), slices.Sorted(maps.Keys(e.DeletingPods)))
		}
	}
	return text + fmt.Sprint(s.ObservedGeneration)
}

// execute writes an action as the server would: deletions have the version as precondition, marks the UID.
func (w *world) execute(a *action.Action) int {
	seen := a.Object.(*corev1.Pod)
	pod := w.pods[seen.Name]
	if pod == nil {
		return 0
	}
	if a.Verb == action.Delete {
		since, waits := unschedulableSince(pod)
		if pod != seen {
			return 0 // it has changed
		}
		require.True(w, waits && w.at.Sub(since) >= 5*time.Second, "only pods that cannot be scheduled are deleted")
		m, _ := subsets.MatchOf(pod)
		known := subsets.Entries(w.spread, w.spread.Status.VersionedSubsetStatuses[subsets.VersionOf(pod, w.versioned())])
		require.True(w, subsets.IsUnschedulable(known[subsets.Index(w.spread, m.Subset)].Conditions), "its successor goes elsewhere")
		w.moved++
		w.terminate(pod)
		return 1
	}
	require.Equal(w, action.PatchMetadata, a.Verb)
	after := pod.DeepCopy()
	meta := a.Patches[0].Body["metadata"].(map[string]any)
	for key, value := range meta["annotations"].(map[string]any) {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, value.(string))
		w.adopted[pod.Name] = w.adopted[pod.Name] || key == v1beta1.MatchedAnnotation
	}
	w.put(after)
	return 1
}
