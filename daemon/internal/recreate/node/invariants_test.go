package node_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

func (w *world) pods() []types.UID {
	var pods []types.UID
	for pod := range w.runs {
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	return pods
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
	switch n := w.rng.IntN(100); {
	case n < 30:
		pods := w.pods()
		w.agent(pods[w.rng.IntN(len(pods))])
	case n < 50:
		for range 1 + w.rng.IntN(3) {
			w.watch()
		}
	case n < 58:
		w.kubelet()
	case n < 65:
		w.runtime()
	case n < 74:
		w.hooks()
	case n < 86:
		for _, uid := range w.uids() {
			w.manager(uid)
		}
	case n < 91:
		w.request()
	case n < 95:
		w.trouble()
	case n < 97:
		if run := w.newest(w.names()); run.Running {
			w.end(run, "by itself")
		}
	case n < 98:
		w.removeOne()
	case w.rng.IntN(4) > 0:
	case w.object.DeletionTimestamp == nil:
		w.deletePod()
	default:
		w.replacePod()
	}
	w.judgeHolds()
}

func (w *world) names() string { return w.choice(names()...) }

// trouble comes to the agent, the manager or the server.
func (w *world) trouble() {
	switch w.rng.IntN(5) {
	case 0, 1:
		w.crash()
	case 2:
		w.away = !w.away
		w.note("the agent is away: %v", w.away)
		w.crash()
	case 3:
		w.newManager()
	default:
		w.refuse()
	}
}

// settle lets everybody work without faults until every request is over. The agent comes back, or never.
func (w *world) settle() {
	w.calm, w.calmed = true, w.now
	clear(w.refused)
	if w.away = w.away && w.rng.IntN(2) == 0; w.away {
		w.note("the agent never comes back")
	}
	if w.object.DeletionTimestamp != nil {
		w.replacePod()
	}
	w.request()
	w.request()
	for range 4000 {
		w.now = w.now.Add(500 * time.Millisecond)
		w.list()
		w.agent(w.pod)
		w.hooks()
		w.runtime()
		w.kubelet()
		for _, uid := range w.uids() {
			w.manager(uid)
		}
		w.judgeHolds()
		w.judgeLate()
		if !slices.ContainsFunc(w.uids(), w.unfinished) && len(w.stopping) == 0 {
			w.judgeRest()
			return
		}
	}
	for _, uid := range slices.DeleteFunc(w.uids(), func(uid types.UID) bool { return !w.unfinished(uid) }) {
		w.note("%s: %+v, finalizers %v, owed %s", uid, w.server[uid].Status, w.server[uid].Finalizers, w.owed[uid])
	}
	w.must(false, "requests are stuck; the runtime works on %v, the agent on %v", w.stopping, w.known())
}

// unfinished says that something is left to do for a request.
func (w *world) unfinished(uid types.UID) bool {
	r := w.server[uid]
	stop, begun := w.known()[w.owed[uid]]
	return r.Status.Phase != v1beta1.RecreateCompleted || len(r.Finalizers) > 0 || begun && stop.Stage != node.Ended
}

func play(t *testing.T, seed uint64, steps int) {
	t.Helper()
	w := newWorld(t, seed)
	for range steps {
		w.step()
	}
	w.settle()
}

// Whatever the order of events, crashes, refusals and lost answers, whatever the clocks say, and whether or not
// the agent comes back: a container is stopped once for a request and only when that is written; only what was
// named, only in the pod that was meant; one request at a time; all come to an end, none before its time, and
// what was begun is ended and told.
func TestInvariants(t *testing.T) {
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		play(t, seed, 250)
	})
}

func FuzzInvariants(f *testing.F) {
	f.Add(uint64(1), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { play(t, seed, int(steps%3000)) })
}
