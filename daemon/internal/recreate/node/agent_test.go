package node_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerrestart"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

var (
	errIll    = errors.New("the runtime is ill")
	errAway   = status.Error(codes.Unavailable, "the runtime is away")
	errLate   = status.Error(codes.DeadlineExceeded, "the runtime is late")
	errServer = errors.New("the server does not answer")
)

// parts is the world as the agent sees it: the container runtime, the server, the clock, and what carries out stops.
type parts struct{ *world }

func (p parts) Now() time.Time                  { return p.at("node") }
func (p parts) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

// Active returns the active requests for a pod as the cache has them.
func (p parts) Active(_ context.Context, key types.NamespacedName) (known []*v1beta1.ContainerRecreateRequest, err error) {
	for _, uid := range slices.Sorted(maps.Keys(p.cache)) {
		if r := p.cache[uid]; r.Labels[v1beta1.PodUIDLabel] == key.Name {
			known = append(known, r)
		}
	}
	return known, nil
}

// Get reads a pod or a request from the server.
func (p parts) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if p.odds(30) {
		return errServer
	}
	if pod, ok := into.(*corev1.Pod); ok {
		p.object.DeepCopyInto(pod)
		return nil
	}
	r := p.server[types.UID(key.Name)]
	if r == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "containerrecreaterequests"}, key.Name)
	}
	r.DeepCopyInto(into.(*v1beta1.ContainerRecreateRequest))
	return nil
}

func (p parts) List(context.Context, client.ObjectList, ...client.ListOption) error { return errServer }

// Containers lists the containers of the pod that is there now.
func (p parts) Containers(context.Context, string, string, []string) ([]cri.Container, error) {
	if p.odds(30) {
		return nil, errAway
	}
	var all []cri.Container
	for _, run := range p.runs[p.pod] {
		state := cri.StateCreated
		if run.Running {
			state = cri.StateRunning
		} else if run.Exited {
			state = cri.StateExited
		}
		all = append(all, cri.Container{
			ID: run.ID, Name: run.Name, Pod: cri.Pod{Namespace: "default", Name: "web", UID: p.pod}, State: state,
			CreatedAt: run.CreatedAt, RestartCount: run.RestartCount,
		})
	}
	return all, nil
}

// Status returns the times of a container.
func (p parts) Status(_ context.Context, id string) (cri.Status, error) {
	for _, run := range p.runs[p.pod] {
		if run.ID == id {
			return cri.Status{StartedAt: run.StartedAt, FinishedAt: run.FinishedAt}, nil
		}
	}
	return cri.Status{}, status.Error(codes.NotFound, "no such container")
}

// Hook ends a hook, if there is one, with the answer of the moment.
func (p parts) Hook(ctx context.Context, o containerstop.Request) (time.Duration, error) {
	switch {
	case ctx.Err() != nil:
		return 0, containerstop.ErrAborted
	case o.PreStop == nil:
		return 0, nil
	}
	return 0, p.answer
}

// Signal ends a stop with the answer of the moment.
func (p parts) Signal(context.Context, containerstop.Request, time.Duration) error { return p.answer }

// newAgent is one with an empty memory.
func (w *world) newAgent() {
	p := parts{w}
	w.begun, w.work = nil, map[string]func(){}
	w.stops = stops.New(p, p, func(work func()) { w.begun = append(w.begun, work) })
	w.passes = containerrestart.NewPasses(containerrestart.Sources{
		Active: p.Active, Live: p, Runtimes: p, Clock: p,
		Refusals: func(pod client.Object, now time.Time) action.Refusals {
			return w.pausing.For(memory.KeyOf(pod), refusals.Observation{Now: now})
		},
	}, w.stops, func(context.Context, types.NamespacedName) {})
}

func passKey(pod types.UID) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: string(pod)}
}

// known returns the stops that the agent has begun, of all pods.
func (w *world) known() map[string]stops.Stop {
	all := map[string]stops.Stop{}
	for pod := range w.runs {
		maps.Copy(all, w.stops.Of(passKey(pod)))
	}
	return all
}

// lags reports whether the cache does not show the agent's own writes yet: then no pass runs.
func (w *world) lags() bool {
	for uid, r := range w.cache {
		if version, _ := strconv.Atoi(r.ResourceVersion); version < w.written[uid] {
			return true
		}
	}
	return false
}

// agent is one pass over one pod.
func (w *world) agent(pod types.UID) {
	if w.away || w.lags() {
		return
	}
	ctx, key := ctrl.LoggerInto(w.t.Context(), logr.Discard()), passKey(pod)
	made, err := w.passes.Look(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		w.passes.Forget(key)
	case err != nil:
		w.must(errors.Is(err, errServer), "a pass fails: %v", err)
	case made.Do == nil:
		w.note("the agent waits for the runtime")
	default:
		w.follow(key, &made)
	}
}

// follow carries out a pass. The agent may be killed between any two writes.
func (w *world) follow(key types.NamespacedName, made *pass.Pass) {
	now := func() time.Time { return w.at("node") }
	done := progress.Run(made.Plan.Steps, progress.InTurn(w.write, now), progress.Options{Workload: memory.KeyOf(made.Object), Refusals: w.pausing})
	if errors.Is(done.Err, operator.ErrCrash) {
		w.crash()
		return
	}
	before := w.stops.Of(key)
	made.Do(ctrl.LoggerInto(w.t.Context(), logr.Discard()), func() progress.Result { return done })
	for id, stop := range w.stops.Of(key) {
		if was, known := before[id]; known && was.Stage == stop.Stage && was.For == stop.For {
			continue
		}
		w.must(len(w.begun) == 1, "one pass begins %d stops", len(w.begun))
		w.work[id], w.begun = w.begun[0], nil
		w.note("%s: stage %d for %s", id, stop.Stage, stop.For.Name)
		w.judgeStop(key, before, id, stop)
		if stop.Stage == node.Told {
			w.stopping[id] = stop.For.UID
		}
	}
	w.must(len(w.begun) == 0, "a stop begins that nobody knows of")
}

// goOn ends what the agent is doing about a stop, with an answer.
func (w *world) goOn(id string, answer error) {
	work := w.work[id]
	delete(w.work, id)
	w.answer = answer
	work()
}

// runtime finishes one stop, one way or the other. The agent that asked for it may have gone.
func (w *world) runtime() {
	if len(w.stopping) == 0 {
		return
	}
	id := slices.Min(slices.Collect(maps.Keys(w.stopping)))
	request := w.stopping[id]
	delete(w.stopping, id)
	var answer error
	switch {
	case w.odds(6):
		answer = errIll
		delete(w.owed, request)
	case w.odds(12):
		answer = errAway
		delete(w.owed, request)
	default:
		w.endStopped(id, request)
		if w.odds(12) {
			answer = errLate
		}
	}
	if w.known()[id].Stage == node.Told && w.work[id] != nil {
		w.goOn(id, answer)
	}
}

// hooks ends the hook that is under way, in its time. Now and then the container ends, too.
func (w *world) hooks() {
	if w.rng.IntN(4) > 0 {
		return
	}
	all := w.known()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].Stage != node.InHook {
			continue
		}
		if w.odds(12) {
			w.goOn(id, errAway)
			delete(w.owed, all[id].For.UID)
			w.note("the runtime is away during the hook of %s", id)
			continue
		}
		w.goOn(id, nil)
		w.note("the hook of %s is over", id)
		for i := range w.runs[w.pod] {
			if run := &w.runs[w.pod][i]; run.ID == id && run.Running && w.rng.IntN(4) == 0 {
				w.end(run, "in its hook")
			}
		}
	}
}
