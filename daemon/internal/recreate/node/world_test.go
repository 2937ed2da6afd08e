package node_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// world is a node with one pod at a time, its agent, an API server and a manager, all in memory, each with a
// clock of its own. It judges every write and every stop.
type world struct {
	t   *testing.T
	rng *rand.Rand
	now time.Time
	// skew is how far the clocks of node, manager and server are ahead.
	skew map[string]time.Duration

	// the node
	pod    types.UID
	object *corev1.Pod
	runs   map[types.UID][]node.Container
	next   int

	// the server, what it refuses, and what the agent sees of it
	version int
	server  map[types.UID]*v1beta1.ContainerRecreateRequest
	refused map[string]bool
	events  []event // that the agent has not seen yet
	cache   map[types.UID]*v1beta1.ContainerRecreateRequest

	// the agent, if there is one; stopping are the stops that the runtime works on, which outlive it
	away     bool
	seen     map[types.UID]time.Time
	stops    map[string]node.Stop
	kept     map[types.UID]*v1beta1.ContainerRecreateRequest // requests that are over, as it read them
	begun    map[types.UID]bool                              // requests that may have begun
	written  map[types.UID]int                               // versions of its own writes
	pausing  *refusals.Tracker                               // what it leaves alone for a while
	stopping map[string]types.UID

	// the manager
	memory *plan.Memory
	pauses *refusals.Tracker
	clock  string

	// what the judge remembers, by the true time
	effects map[string]int          // by request and container
	picked  map[string]string       // the run at the time of the pick, by request and container
	heard   map[types.UID]time.Time // when the agent last wrote
	first   map[types.UID]time.Time // when a manager first saw it
	met     map[types.UID]time.Time // when this manager first saw it
	over    map[types.UID]time.Time // when it was completed
	records map[types.UID]int       // writes of the agent after that
	tries   simulate.Tries          // refused writes of this manager
	asked   simulate.Tries          // refused writes of this agent
	holds   map[types.UID]int       // how often it took the pod out of service
	owed    map[types.UID]string    // the run whose stop had begun when it was completed
	calm    bool                    // no faults any more
	calmed  time.Time               // since then
	log     []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, seed)), now: at(0), skew: map[string]time.Duration{},
		runs: map[types.UID][]node.Container{}, server: map[types.UID]*v1beta1.ContainerRecreateRequest{}, refused: map[string]bool{},
		cache: map[types.UID]*v1beta1.ContainerRecreateRequest{}, stopping: map[string]types.UID{},
		effects: map[string]int{}, picked: map[string]string{}, heard: map[types.UID]time.Time{}, first: map[types.UID]time.Time{},
		over: map[types.UID]time.Time{}, records: map[types.UID]int{}, holds: map[types.UID]int{}, owed: map[types.UID]string{},
	}
	for _, who := range []string{"node", "manager", "server"} {
		w.skew[who] = w.anySkew()
	}
	w.newManager()
	w.crash()
	w.replacePod()
	return w
}

func names() []string { return []string{"a", "b", "c"} }

// at returns the time that a clock shows.
func (w *world) at(clock string) time.Time { return w.now.Add(w.skew[clock]) }

// anySkew returns up to five minutes, either way.
func (w *world) anySkew() time.Duration { return time.Duration(w.rng.IntN(601)-300) * time.Second }

func (w *world) choice(of ...string) string { return of[w.rng.IntN(len(of))] }

// odds reports whether a fault of one in n happens.
func (w *world) odds(n int) bool { return !w.calm && w.rng.IntN(n) == 0 }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4.0fs ", w.now.Sub(at(0)).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) must(ok bool, format string, args ...any) {
	w.t.Helper()
	if ok {
		return
	}
	from := max(len(w.log)-80, 0)
	for _, line := range w.log[from:] {
		w.t.Log(line)
	}
	require.Fail(w.t, fmt.Sprintf(format, args...))
}

// replacePod makes another pod of the name; nothing of the old one runs any more.
func (w *world) replacePod() {
	w.next++
	w.pod = types.UID("pod-" + strconv.Itoa(w.next))
	w.object = w.newPodObject()
	clear(w.owed)
	w.note("pod %s", w.pod)
	for _, name := range names() {
		w.start(name, 0)
	}
	w.report()
}

// deletePod begins the end of the pod.
func (w *world) deletePod() {
	w.note("the pod is deleted")
	w.object.DeletionTimestamp = new(metav1.NewTime(w.at("server")))
	clear(w.owed)
}

func (w *world) start(name string, count int32) {
	w.next++
	w.runs[w.pod] = append(w.runs[w.pod], node.Container{
		Name: name, ID: fmt.Sprintf("containerd://%s-%d", name, w.next), Running: true, RestartCount: count, CreatedAt: w.at("node"), StartedAt: w.at("node"),
	})
}

// newest returns the last run of a container of the pod that is there now.
func (w *world) newest(name string) *node.Container {
	runs := w.runs[w.pod]
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Name == name {
			return &runs[i]
		}
	}
	w.must(false, "no container %s", name)
	return nil
}

func (w *world) end(run *node.Container, why string) {
	run.Running, run.Exited, run.FinishedAt = false, true, w.at("node")
	w.note("%s ends: %s", run.ID, why)
}

// kubelet starts one container that has ended, or reports.
func (w *world) kubelet() {
	for _, name := range names() {
		if run := w.newest(name); run.Exited && w.object.DeletionTimestamp == nil && (w.calm || w.rng.IntN(2) == 0) {
			w.start(name, run.RestartCount+1)
			w.note("%s starts", w.newest(name).ID)
			break
		}
	}
	w.report()
}

// runtime finishes one stop, one way or the other.
func (w *world) runtime() {
	if len(w.stopping) == 0 {
		return
	}
	id := slices.Min(slices.Collect(maps.Keys(w.stopping)))
	request := w.stopping[id]
	delete(w.stopping, id)
	stop, ours := w.stops[id]
	stop.Stage, stop.At = node.Ended, w.at("node")
	if w.odds(6) {
		stop.Err = errors.New("the runtime is ill")
		delete(w.owed, request)
	} else {
		w.endStopped(id, request)
	}
	if ours {
		w.stops[id] = stop
	}
}

func (w *world) endStopped(id string, request types.UID) {
	for i := range w.runs[w.pod] {
		if run := &w.runs[w.pod][i]; run.ID == id && run.Running {
			w.end(run, "stopped for "+string(request))
			key := string(request) + "/" + run.Name
			w.effects[key]++
			w.must(w.effects[key] == 1, "%s was stopped twice for %s", run.Name, request)
		}
	}
}

// hooks ends the hook that is under way, in its time. Now and then the container ends, too.
func (w *world) hooks() {
	if w.rng.IntN(4) > 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.stops)) {
		stop := w.stops[id]
		if stop.Stage != node.InHook {
			continue
		}
		stop.Stage = node.AfterHook
		w.stops[id] = stop
		w.note("the hook of %s is over", id)
		for i := range w.runs[w.pod] {
			if run := &w.runs[w.pod][i]; run.ID == id && run.Running && w.rng.IntN(4) == 0 {
				w.end(run, "in its hook")
			}
		}
	}
}

// crash ends the agent; another one starts with an empty memory and lists the requests. What the runtime
// was told goes on.
func (w *world) crash() {
	w.note("the agent starts")
	w.seen, w.stops, w.written = map[types.UID]time.Time{}, map[string]node.Stop{}, map[types.UID]int{}
	w.kept, w.begun = map[types.UID]*v1beta1.ContainerRecreateRequest{}, map[types.UID]bool{}
	w.pausing, w.asked = &refusals.Tracker{}, simulate.Tries{}
	clear(w.owed)
	w.list()
	if w.rng.IntN(2) == 0 {
		w.stopping = map[string]types.UID{} // the runtime had not been told yet
	}
}

// requests returns those for a pod that the agent knows of: the active ones, and of the others those that it has begun
// a stop for.
func (w *world) requests(pod types.UID, stops map[string]node.Stop) (known []*v1beta1.ContainerRecreateRequest, stale bool) {
	for _, uid := range slices.Sorted(maps.Keys(w.cache)) {
		r := w.cache[uid]
		if version, _ := strconv.Atoi(r.ResourceVersion); version < w.written[uid] {
			return nil, true // the cache does not show its own writes yet
		}
		if r.Labels[v1beta1.PodUIDLabel] == string(pod) {
			known = append(known, r)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stops)) {
		stop := stops[id]
		if w.cache[stop.Request] != nil || stop.Stage != node.InHook && stop.Stage != node.AfterHook {
			continue
		}
		if w.kept[stop.Request] == nil && w.server[stop.Request] != nil {
			w.kept[stop.Request] = w.server[stop.Request].DeepCopy()
		}
		if r := w.kept[stop.Request]; r != nil {
			known = append(known, r)
		}
	}
	return known, false
}

// agent is one round for one pod.
func (w *world) agent(pod types.UID) {
	if w.away {
		return
	}
	s := node.Snapshot{PodUID: pod, GraceSeen: w.seen, Begun: w.begun, Stops: map[string]node.Stop{}, Now: w.at("node")}
	for _, run := range w.runs[pod] {
		if stop, begun := w.stops[run.ID]; begun {
			s.Stops[run.ID] = stop
		}
	}
	if pod == w.pod {
		s.Containers = w.runs[pod]
	}
	var stale bool
	if s.Requests, stale = w.requests(pod, s.Stops); stale {
		return
	}
	for _, r := range s.Requests {
		if _, known := w.seen[r.UID]; !known && len(r.Status.Conditions) > 0 {
			w.seen[r.UID] = w.at("node")
		}
	}
	s.PodGone = node.NeedsPodGone(s) && (pod != w.pod || w.object.DeletionTimestamp != nil)
	key := memory.Key{NamespacedName: types.NamespacedName{Name: string(pod)}, UID: pod}
	s.Refusals = w.pausing.For(key, refusals.Observation{Now: s.Now})
	w.follow(key, node.Compute(s))
}

// follow does what the agent wants. The agent may be killed between any two things.
func (w *world) follow(key memory.Key, todo node.Plan) {
	for _, id := range todo.Abort {
		w.note("the stop of %s is given up", id)
		delete(w.stops, id)
	}
	now := func() time.Time { return w.at("node") }
	done := progress.Run(todo.Steps, progress.InTurn(w.write, now), progress.Options{Workload: key, Refusals: w.pausing})
	if errors.Is(done.Err, simulate.ErrCrash) {
		w.crash()
		return
	}
	for _, uid := range todo.Doubtful(&done) {
		w.begun[uid] = true
	}
	if kill := todo.Hook; kill != nil && todo.Written(kill, &done) {
		w.note("hook of %s for %s", kill.ContainerID, kill.Request.Name)
		w.judgeKill(kill, true)
		w.stops[kill.ContainerID] = node.Stop{Request: kill.Request.UID}
	}
	if kill := todo.Kill; kill != nil && todo.Written(kill, &done) {
		w.note("stop %s for %s", kill.ContainerID, kill.Request.Name)
		w.judgeKill(kill, false)
		w.stops[kill.ContainerID] = node.Stop{Request: kill.Request.UID, Stage: node.Told}
		w.stopping[kill.ContainerID] = kill.Request.UID
	}
}
