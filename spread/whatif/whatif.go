package whatif

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	simulated "github.com/flotilla-project/flotilla/core/simulation/workloads"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
)

// Actor is who writes to the world for spreads.
const Actor = "spread-manager"

// Spreads are the WorkloadSpreads of one world, with the settings of an operator without flags. They are for one goroutine, as
// the world is.
type Spreads struct {
	world     *cluster.World // nil until it is watched
	cache     *fastclient.Reader
	webhook   admission.Pods
	snapshots *workloadspread.Snapshots
	known     map[types.NamespacedName]*spread
}

// State describes a spread and its pods.
type State struct {
	// Spread is its name, and Target its workload.
	Spread types.NamespacedName
	Target v1beta1.TargetReference
	// Subsets are in the order of the spec.
	Subsets []Subset
	// Without is how many active pods of the workload are in no subset.
	Without int
	// Unplaced is how many creations of pods got no subset since the world is watched: all were full, or the pod was refused.
	Unplaced int
	// Status is the status that an operator would write.
	Status v1beta1.WorkloadSpreadStatus
	// Err is why Status could not be renewed; nil if it could. On a server the status stays as it is then, too.
	Err error
}

// Unlimited is the limit of a subset without one, and the number of pods that it misses.
const Unlimited = -1

// Subset describes the pods of a subset, of all revisions of the workload together.
type Subset struct {
	Name string
	// Pods is how many pods it has without finished and terminating ones.
	Pods int
	// Limit is how many pods of a revision it may have, and Missing how many more it could have. Both can be Unlimited.
	Limit, Missing int
	// Closed is true while it gets no pods, because some could not be scheduled.
	Closed bool
}

// New returns the spreads of a world that is yet to be watched.
func New() *Spreads { return &Spreads{known: map[types.NamespacedName]*spread{}} }

// Watch begins to reconcile the spreads of a world, those that it has and those that are added. A world that is watched already
// stays as it is.
func (s *Spreads) Watch(w *cluster.World) {
	if s.world != nil {
		return
	}
	s.world, s.cache = w, newCache(w)
	live := liveReader{world: w}
	reader := workloads.ReaderOf(&workloads.Config{Live: live, Namespace: system, Clock: w}, simulated.NewReader(w), live)
	versioned, _ := workloads.ParseVersioned([]string{"deployment", "replicaset"}) // both are known
	s.snapshots = workloadspread.NewSnapshots(workloadspread.SnapshotOptions{
		Cached:    s.cache,
		Live:      live,
		Workloads: reader,
		Versioned: versioned,
		Pause:     workloadspread.DefaultPause,
		Clock:     w,
	})
	s.webhook = admission.Pods{
		Spreads: &admission.List{
			Cached:   s.in,
			Live:     live,
			Admitted: never,
			Clock:    w,
		},
		Workloads: reader,
		Versioned: versioned,
		Places:    places{s},
		Clock:     w,
		Unplaced:  s.unplaced,
		All:       s.pods,
	}
	s.wakeAll("")
	w.OnEvent(s.see)
}

// States returns the states of all spreads that the world has, by namespace and name.
func (s *Spreads) States() []State {
	var all []State
	ctx := quiet()
	for _, one := range s.inOrder() {
		if one.renew(ctx); one.exists {
			all = append(all, one.state)
		}
	}
	return all
}

// inOrder returns all records, by namespace and name.
func (s *Spreads) inOrder() []*spread {
	return slices.SortedFunc(maps.Values(s.known), func(a, b *spread) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
}

// see wakes the spreads that an event may concern.
func (s *Spreads) see(e cluster.Event) {
	switch {
	case e.Kind == v1beta1.WorkloadSpreadKind:
		s.wakeAll(e.Object.GetNamespace())
	case e.Kind == "Pod":
		s.seePod(e)
	case cluster.PlainKind(e.Object) == "Workload" && e.Object.GetNamespace() != "":
		s.wakeAll(e.Object.GetNamespace())
	}
}

func (s *Spreads) seePod(e cluster.Event) {
	after, _ := e.Object.(*corev1.Pod)
	before, _ := e.Old.(*corev1.Pod)
	if e.Type == cluster.Modified && !workloadspread.Changed(before, after) {
		return
	}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		for _, key := range s.snapshots.SpreadsOf(pod) {
			s.of(key).wake()
		}
	}
}

// wakeAll wakes the spreads of a namespace or, if it is empty, all of them, and those that are gone.
func (s *Spreads) wakeAll(namespace string) {
	for _, key := range s.stored(namespace) {
		s.of(key)
	}
	for _, one := range s.inOrder() {
		if namespace == "" || one.key.Namespace == namespace {
			one.wake()
		}
	}
}
