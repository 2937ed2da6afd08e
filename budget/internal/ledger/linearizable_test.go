package ledger_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // thousands of short histories, each of a server of its own
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
)

// Two replicas of the webhook answer many clients from views that lag, die before and after their writes and are replaced,
// while the controller ends grants. The checker finds an order in which one process could have given all the answers.
func TestGrantsAreLinearizable(t *testing.T) {
	const clients, questions, floor = 6, 6, 3
	answers := map[verdict]int{}
	seeds.Each(t, 100, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newShared(t, seed, floor)
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				r := w.random(uint64(i))
				for range questions {
					w.ask(r, i%2)
				}
			})
		}
		all.Go(func() {
			r := w.random(clients)
			for range questions * 3 {
				w.replace(r.IntN(size))
			}
		})
		all.Wait()
		w.calm.Store(true)
		for i := range size {
			w.askSharply(i)
		}
		w.look(t)
		require.True(t, porcupine.CheckOperations(model(floor), w.all), "%d operations have no order", len(w.all))
		for _, o := range w.all {
			if v, ok := o.Output.(verdict); ok {
				answers[v]++
			}
		}
	})
	for _, v := range []verdict{granted, refused, unknown} {
		assert.Positive(t, answers[v], v)
	}
}

// The checker would notice.
func TestHistoriesThatNoLedgerMayHave(t *testing.T) {
	at := func(n int64, input, output any) porcupine.Operation {
		return porcupine.Operation{ClientId: int(n), Input: input, Call: 2 * n, Output: output, Return: 2*n + 1}
	}
	one, other := asked{pod: 1, incarnation: 1}, asked{pod: 2, incarnation: 1}
	state := func(available int32, pods ...int) ledgerState {
		s := ledgerState{available: available}
		for _, i := range pods {
			s.granted[i] = 1
		}
		return s
	}
	const floor = size - 1
	for name, h := range map[string][]porcupine.Operation{
		"a unit is spent twice":       {at(1, one, granted), at(2, other, granted)},
		"a grant is lost":             {at(1, one, granted), at(2, looked{}, state(size))},
		"a pod is charged twice":      {at(1, one, granted), at(2, one, granted), at(3, looked{}, state(floor-1, 1))},
		"a unit is withheld":          {at(1, asked{1, 1, true}, refused)},
		"a grant ends that was never": {at(1, returned{1, 1}, true)},
		"a grant that ended is back":  {at(1, one, granted), at(2, returned{1, 1}, true), at(3, looked{}, state(floor, 1))},
	} {
		assert.False(t, porcupine.CheckOperations(model(floor), h), name)
	}
	assert.True(t, porcupine.CheckOperations(model(floor), []porcupine.Operation{
		at(1, one, granted), at(2, other, refused), at(3, one, granted), at(4, returned{1, 1}, true), at(5, other, granted),
		at(6, looked{}, state(floor, 2)),
	}))
}

// shared is a budget that two replicas of the webhook share.
type shared struct {
	history

	server client.WithWatch
	key    client.ObjectKey
	seed   uint64
	calm   atomic.Bool // nobody dies any more

	replicas [2]atomic.Pointer[ledger.Ledger]
	views    [2]atomic.Pointer[v1beta1.PodUnavailableBudget] // what the cache of each replica shows
	pods     [size]atomic.Int32                              // the present incarnation of each
}

func newShared(t *testing.T, seed uint64, floor int32) *shared {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1beta1.AddToScheme(scheme))
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "budget"}}
	b.Spec.MinAvailable = new(intstr.FromInt32(floor))
	b.Status.CurrentAvailable, b.Status.DesiredAvailable, b.Status.TotalReplicas = size, floor, size
	w := &shared{
		server: fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build(),
		key:    client.ObjectKeyFromObject(b), seed: seed,
	}
	for i := range w.pods {
		w.pods[i].Store(1)
	}
	for i := range w.replicas {
		w.start(i, w.random(uint64(100+i)))
		w.see(i)
	}
	return w
}

func (w *shared) random(of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, of)) //nolint:gosec // a replay is more alike with the same numbers
}

var errDied = errors.New("the process has died")

// start starts a replica, which dies at some write: before the server has it, or before the answer comes.
func (w *shared) start(i int, r *rand.Rand) {
	dies := int64(2 + r.IntN(4))
	before := r.IntN(2) == 0
	var writes atomic.Int64
	c := interceptor.NewClient(w.server, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			last := !w.calm.Load() && writes.Add(1) == dies
			if last && before {
				return errDied
			}
			err := c.SubResource(name).Patch(ctx, o, patch, options...)
			if last && err == nil {
				return errDied
			}
			return err
		},
	})
	w.replicas[i].Store(&ledger.Ledger{Client: c, Live: w.server, Clock: clock.RealClock{}})
}

// see brings the cache of a replica up to date.
func (w *shared) see(i int) {
	b := &v1beta1.PodUnavailableBudget{}
	if w.server.Get(context.Background(), w.key, b) == nil {
		w.views[i].Store(b)
	}
}

// ask asks a replica about a pod.
func (w *shared) ask(r *rand.Rand, replica int) {
	if r.IntN(3) == 0 {
		w.see(replica)
	}
	i := r.IntN(size)
	now := w.replicas[replica].Load()
	output := w.do(func() (any, any) {
		in := asked{pod: i, incarnation: w.pods[i].Load()}
		return in, w.answer(now, w.views[replica].Load(), in)
	})
	if output == unknown && w.replicas[replica].Load() == now {
		w.start(replica, r)
		w.see(replica)
	}
}

// askSharply asks a replica that knows everything.
func (w *shared) askSharply(i int) {
	w.start(0, w.random(0))
	w.see(0)
	in := asked{pod: i, incarnation: w.pods[i].Load(), sharp: true}
	w.do(func() (any, any) { return in, w.answer(w.replicas[0].Load(), w.views[0].Load(), in) })
}

func (w *shared) answer(by *ledger.Ledger, b *v1beta1.PodUnavailableBudget, in asked) verdict {
	pod := gen.Pod(podName(in.pod), gen.Ready(time.Now()))
	pod.UID = uidOf(in.pod, in.incarnation)
	why, err := by.Ask(context.Background(), b.DeepCopy(), disruption.Request{Pod: pod, Operation: v1beta1.DeleteOperation})
	switch {
	case err != nil:
		return unknown
	case why != "":
		return refused
	}
	return granted
}

// replace has a new pod come for one that has a grant, and the controller count it.
func (w *shared) replace(i int) {
	was := w.pods[i].Load()
	b := &v1beta1.PodUnavailableBudget{}
	if err := w.server.Get(context.Background(), w.key, b); err != nil || b.Status.PodUIDs[podName(i)] != uidOf(i, was) {
		return
	}
	w.pods[i].Store(was + 1)
	w.do(func() (any, any) {
		delete(b.Status.PodUIDs, podName(i))
		delete(b.Status.DisruptedPods, podName(i))
		b.Status.CurrentAvailable++
		return returned{i, was}, w.server.Status().Update(context.Background(), b) == nil
	})
}

// look records what the server has.
func (w *shared) look(t *testing.T) {
	t.Helper()
	w.do(func() (any, any) {
		b := &v1beta1.PodUnavailableBudget{}
		err := w.server.Get(t.Context(), w.key, b)
		require.NoError(t, err)
		return looked{}, stateOf(&b.Status)
	})
}
