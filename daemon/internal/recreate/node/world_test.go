package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

var errConflict = errors.New("conflict")

// world is a node with one pod at a time, an API server and a manager, all in memory. It judges every
// write and every stop of the agent.
type world struct {
	t   *testing.T
	rng *rand.Rand
	now time.Time

	// the node
	pod  types.UID
	runs map[types.UID][]node.Container
	next int

	// the server, and what the agent sees of it
	version int
	server  map[types.UID]*v1beta1.ContainerRecreateRequest
	events  []event // that the agent has not seen yet
	cache   map[types.UID]*v1beta1.ContainerRecreateRequest

	// the agent; stopping are the stops that the runtime works on, which outlive it
	seen     map[types.UID]time.Time
	stops    map[string]node.Stop
	written  map[types.UID]int // versions of its own writes
	stopping map[string]types.UID

	// what the judge remembers
	effects map[string]int    // by request and container
	picked  map[string]string // the run at the time of the pick, by request and container
	calm    bool              // no faults any more
	log     []string
}

// event is a change of a request; a nil object is its deletion.
type event struct {
	uid    types.UID
	object *v1beta1.ContainerRecreateRequest
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, seed)), now: at(0),
		runs: map[types.UID][]node.Container{}, server: map[types.UID]*v1beta1.ContainerRecreateRequest{},
		cache: map[types.UID]*v1beta1.ContainerRecreateRequest{}, effects: map[string]int{}, picked: map[string]string{},
		stopping: map[string]types.UID{},
	}
	w.crash()
	w.replacePod()
	return w
}

func (w *world) names() []string { return []string{"a", "b", "c"} }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4.0fs ", w.now.Sub(at(0)).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) must(ok bool, format string, args ...any) {
	w.t.Helper()
	if ok {
		return
	}
	from := max(len(w.log)-60, 0)
	for _, line := range w.log[from:] {
		w.t.Log(line)
	}
	require.Fail(w.t, fmt.Sprintf(format, args...))
}

// replacePod makes another pod of the name; nothing of the old one runs any more.
func (w *world) replacePod() {
	w.next++
	w.pod = types.UID("pod-" + strconv.Itoa(w.next))
	w.note("pod %s", w.pod)
	for _, name := range w.names() {
		w.start(name, 0)
	}
}

func (w *world) start(name string, count int32) {
	w.next++
	w.runs[w.pod] = append(w.runs[w.pod], node.Container{
		Name: name, ID: fmt.Sprintf("containerd://%s-%d", name, w.next), Running: true, RestartCount: count, CreatedAt: w.now, StartedAt: w.now,
	})
}

// newest is the last run of a container of the pod that is there now.
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
	run.Running, run.Exited, run.FinishedAt = false, true, w.now
	w.note("%s ends: %s", run.ID, why)
}

// kubelet starts one container that has ended.
func (w *world) kubelet() {
	for _, name := range w.names() {
		if run := w.newest(name); run.Exited && (w.calm || w.rng.IntN(2) == 0) {
			w.start(name, run.RestartCount+1)
			w.note("%s starts", w.newest(name).ID)
			return
		}
	}
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
	stop.Ended, stop.At = true, w.now
	if !w.calm && w.rng.IntN(6) == 0 {
		stop.Err = errors.New("the runtime is ill")
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

// crash ends the agent; another one starts with an empty memory and lists the requests. What the runtime
// was told goes on.
func (w *world) crash() {
	w.note("the agent starts")
	w.seen, w.stops, w.written = map[types.UID]time.Time{}, map[string]node.Stop{}, map[types.UID]int{}
	w.list()
	if w.rng.IntN(2) == 0 {
		w.stopping = map[string]types.UID{} // the runtime had not been told yet
	}
}

// list shows the agent every request as it is now.
func (w *world) list() {
	clear(w.cache)
	w.events = nil
	for uid, r := range w.server {
		w.cache[uid] = r.DeepCopy()
	}
}

// request creates a request for some containers.
func (w *world) request() {
	w.next++
	r := request("r"+strconv.Itoa(w.next), func(r *v1beta1.ContainerRecreateRequest) {
		r.CreationTimestamp = metav1.NewTime(w.now.Add(-5 * time.Minute)) // the server's clock is behind
		r.Labels[v1beta1.PodUIDLabel] = string(w.pod)
		r.Spec.Containers = nil
		s := r.Spec.Strategy
		s.OrderedRecreate, s.ForceRecreate = w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
		s.MinStartedSeconds = int32(w.rng.IntN(2) * 3)
		if w.rng.IntN(3) == 0 {
			s.UnreadyGracePeriodSeconds = new(int64(w.rng.IntN(4)))
		}
		if w.rng.IntN(2) == 0 {
			s.FailurePolicy = v1beta1.FailurePolicyIgnore
		}
	})
	for _, name := range w.names() {
		if run := w.newest(name); w.rng.IntN(2) == 0 {
			r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerToRecreate{
				Name: name, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: run.ID, RestartCount: run.RestartCount},
			})
		}
	}
	w.put(r)
	w.note("request %s for %v, strategy %+v", r.Name, r.Spec.Containers, *r.Spec.Strategy)
}

func (w *world) put(r *v1beta1.ContainerRecreateRequest) {
	w.version++
	r.ResourceVersion = strconv.Itoa(w.version)
	w.server[r.UID] = r
	w.events = append(w.events, event{r.UID, r.DeepCopy()})
}

// patch is the server's answer to a status patch of the agent.
func (w *world) patch(write node.Write) error {
	if !w.calm && w.rng.IntN(12) == 0 {
		return errors.New("the server is away")
	}
	stored := w.server[write.Request.UID]
	if stored == nil || stored.ResourceVersion != write.Request.ResourceVersion {
		return errConflict
	}
	w.must(stored.Status.Phase != v1beta1.RecreateCompleted, "%s is complete and was written to", stored.Name)
	body, err := json.Marshal(write.Patch()["status"])
	w.must(err == nil, "%v", err)
	changed := stored.DeepCopy()
	changed.Status.ContainerRecreateStates = nil
	if _, replaced := write.Status["containerRecreateStates"]; !replaced {
		changed.Status.ContainerRecreateStates = stored.Status.ContainerRecreateStates
	}
	w.must(json.Unmarshal(body, &changed.Status) == nil, "%s", body)
	w.judgeStates(stored, changed)
	w.note("status of %s: %s", stored.Name, body)
	w.put(changed)
	if !w.calm && w.rng.IntN(12) == 0 {
		return errors.New("the answer is lost")
	}
	w.written[changed.UID] = w.version
	return nil
}

func (w *world) judgeStates(old, now *v1beta1.ContainerRecreateRequest) {
	mine := types.UID(now.Labels[v1beta1.PodUIDLabel]) == w.pod
	for i := range now.Status.ContainerRecreateStates {
		state := now.Status.ContainerRecreateStates[i]
		key := string(now.UID) + "/" + state.Name
		if old.Status.Phase != v1beta1.RecreateRecreating && mine {
			w.picked[key] = w.newest(state.Name).ID
			if run := w.newest(state.Name); run.Exited || !now.Spec.Strategy.ForceRecreate {
				w.picked[key] = now.Spec.Containers[i].StatusContext.ContainerID
			}
		}
		if mine && state.Phase == v1beta1.RecreateSucceeded && (len(old.Status.ContainerRecreateStates) == 0 || old.Status.ContainerRecreateStates[i].Phase != state.Phase) {
			w.must(w.newest(state.Name).ID != w.picked[key], "%s of %s has succeeded and runs as before", state.Name, now.Name)
		}
	}
	for uid, other := range w.server {
		both := other.Status.Phase == v1beta1.RecreateRecreating && now.Status.Phase == v1beta1.RecreateRecreating
		same := other.Labels[v1beta1.PodUIDLabel] == now.Labels[v1beta1.PodUIDLabel]
		w.must(uid == now.UID || !both || !same || other.DeletionTimestamp != nil, "%s and %s at a time", other.Name, now.Name)
	}
}

// begin is the agent beginning a stop.
func (w *world) begin(kill *node.Kill) {
	w.note("stop %s for %s", kill.ContainerID, kill.Request.Name)
	if stored := w.server[kill.Request.UID]; stored != nil && stored.Status.Phase != v1beta1.RecreateCompleted {
		marked := false
		for _, state := range stored.Status.ContainerRecreateStates {
			marked = marked || state.Name == kill.Container && state.IsKilled && state.Message == "recreating "+kill.ContainerID
		}
		w.must(marked, "%s is stopped before that is written", kill.ContainerID)
	}
	for id, stop := range w.stops {
		w.must(stop.Ended, "%s is stopped beside %s", kill.ContainerID, id)
		w.must(id != kill.ContainerID || stop.Request != kill.Request.UID, "%s is stopped twice", id)
	}
	named := false
	for _, c := range kill.Request.Spec.Containers {
		named = named || c.Name == kill.Container
		if c.Name == kill.Container && !kill.Request.Spec.Strategy.ForceRecreate {
			w.must(c.StatusContext.ContainerID == kill.ContainerID, "%s had restarted by itself", kill.Container)
		}
	}
	w.must(named, "%s was not asked for", kill.Container)
	found := false
	for _, run := range w.runs[types.UID(kill.Request.Labels[v1beta1.PodUIDLabel])] {
		found = found || run.ID == kill.ContainerID && run.Name == kill.Container
	}
	w.must(found, "%s is no container of the pod that was meant", kill.ContainerID)
	w.stops[kill.ContainerID] = node.Stop{Request: kill.Request.UID}
	w.stopping[kill.ContainerID] = kill.Request.UID
}

// agent is one round for one pod.
func (w *world) agent(pod types.UID) {
	s := node.Snapshot{PodUID: pod, Containers: w.runs[pod], GraceSeen: w.seen, Stops: w.stops, Now: w.now}
	if pod != w.pod {
		s.Containers = nil
	}
	for _, r := range w.cache {
		if version, _ := strconv.Atoi(r.ResourceVersion); version < w.written[r.UID] {
			return // the cache does not show its own writes yet
		}
		s.Requests = append(s.Requests, r)
		for _, c := range r.Status.Conditions {
			if _, known := w.seen[r.UID]; !known && c.Type == v1beta1.PreRecreateGrace {
				w.seen[r.UID] = w.now
			}
		}
	}
	plan := node.Compute(s)
	for _, id := range plan.Abort {
		if _, told := w.stopping[id]; told && w.rng.IntN(2) == 0 {
			delete(w.stopping, id)
			delete(w.stops, id)
		}
	}
	for _, write := range plan.Writes {
		if w.patch(write) != nil {
			return
		}
	}
	if plan.Kill != nil && (w.calm || w.rng.IntN(8) != 0) {
		w.begin(plan.Kill)
	}
}
