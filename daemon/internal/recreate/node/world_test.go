package node_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/retries"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerrestart"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
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
	passes   *containerrestart.Passes
	stops    *stops.Stops
	begun    []func()          // what the pass has begun beside it
	work     map[string]func() // hooks and stops under way, by container ID
	answer   error             // what the next hook or stop ends with
	written  map[types.UID]int // versions of its own writes
	pausing  *refusals.Tracker // what it leaves alone for a while
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
	tries   retries.Tries           // refused writes of this manager
	asked   retries.Tries           // refused writes of this agent
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
	w.written, w.pausing, w.asked = map[types.UID]int{}, &refusals.Tracker{}, retries.Tries{}
	w.newAgent()
	clear(w.owed)
	w.list()
	if w.rng.IntN(2) == 0 {
		w.stopping = map[string]types.UID{} // the runtime had not been told yet
	}
}
