package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// world is a pod with a readiness gate, requests for it, and an agent that goes its way.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	now      time.Time
	pod      *corev1.Pod
	requests map[string]*v1beta1.ContainerRecreateRequest
	memory   *plan.Memory
	next     int
	calm     bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, seed)), now: at(0), pod: pod(held("[" + theirs + "]")),
		requests: map[string]*v1beta1.ContainerRecreateRequest{}, memory: plan.NewMemory(),
	}
}

func (w *world) create() {
	w.next++
	r := request(unready, func(r *v1beta1.ContainerRecreateRequest) {
		r.Name = fmt.Sprintf("r%d", w.next)
		r.UID, r.Annotations = types.UID(r.Name), map[string]string{}
		if w.rng.IntN(2) == 0 {
			r.Spec.ActiveDeadlineSeconds = new(int64(20))
		}
		if w.rng.IntN(2) == 0 {
			r.Spec.TTLSecondsAfterFinished = new(int32(w.rng.IntN(30)))
		}
	})
	w.requests[r.Name] = r
}

func (w *world) any() *v1beta1.ContainerRecreateRequest {
	if len(w.requests) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(w.requests))
	return w.requests[names[w.rng.IntN(len(names))]]
}

// agent moves a request on. It stops nothing before the grace has begun.
func (w *world) agent(r *v1beta1.ContainerRecreateRequest) {
	switch {
	case r.DeletionTimestamp != nil:
	case r.Status.Phase == "":
		r.Status.Phase = v1beta1.RecreateRecreating
	case r.Status.Phase == v1beta1.RecreateRecreating && meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.PreRecreateGrace):
		require.Contains(w.t, w.message(), r.Name+`"`, "the grace begins when the pod is held")
		r.Status.Phase, r.Status.CompletionTime = v1beta1.RecreateCompleted, new(metav1.NewTime(w.now.Add(-5*time.Minute)))
	}
}

// manager is one pass, which may end between any two writes.
func (w *world) manager(r *v1beta1.ContainerRecreateRequest) {
	first, lastSign := w.memory.See(r, w.now)
	p := plan.Compute(plan.Snapshot{Request: r.DeepCopy(), Pod: w.pod.DeepCopy(), FirstSeen: first, LastSign: lastSign, Now: w.now, Clock: here})
	for _, step := range p.Steps {
		for _, a := range step.Actions {
			if !w.calm && w.rng.IntN(4) == 0 {
				return
			}
			w.write(r, a)
		}
	}
	if p.Empty() {
		r.Status = p.Status(action.Failures{})
	}
}

func (w *world) write(r *v1beta1.ContainerRecreateRequest, a action.Action) {
	switch a.Verb {
	case action.Delete:
		require.Empty(w.t, r.Finalizers)
		delete(w.requests, r.Name)
	case action.PatchStatus:
		c := a.Patches[0].Body["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
		condition := podstate.Condition(w.pod, contract.KruisePodReady)
		condition.Status, condition.Message = corev1.ConditionStatus(c["status"].(string)), c["message"].(string)
	default:
		body, err := json.Marshal(a.Patches[0].Body)
		require.NoError(w.t, err)
		change := &v1beta1.ContainerRecreateRequest{}
		require.NoError(w.t, json.Unmarshal(body, change))
		if strings.Contains(string(body), `"finalizers"`) {
			r.Finalizers = change.Finalizers
		}
		if strings.Contains(string(body), `"labels"`) {
			delete(r.Labels, v1beta1.ActiveLabel)
		}
		if change.Annotations != nil {
			maps.Copy(r.Annotations, change.Annotations)
		}
		if r.DeletionTimestamp != nil && len(r.Finalizers) == 0 {
			delete(w.requests, r.Name)
		}
	}
}

func (w *world) message() string { return podstate.Condition(w.pod, contract.KruisePodReady).Message }

// judge: whoever holds the pod is there to let go of it, and the hold of others stands.
func (w *world) judge() {
	var keys []struct{ UserAgent, Key string }
	require.NoError(w.t, json.Unmarshal([]byte(w.message()), &keys))
	others := 0
	for _, key := range keys {
		if key.UserAgent != "ContainerRecreateRequest" {
			others++
			continue
		}
		r := w.requests[strings.TrimPrefix(key.Key, gen.Namespace+"/")]
		require.NotNil(w.t, r, "nobody lets go of %s", key.Key)
		require.Contains(w.t, r.Finalizers, v1beta1.UnreadyAcquiredFinalizer)
	}
	require.Equal(w.t, 1, others)
	require.Equal(w.t, corev1.ConditionFalse, podstate.Condition(w.pod, contract.KruisePodReady).Status)
}

func (w *world) step() {
	w.now = w.now.Add(time.Second)
	r := w.any()
	switch n := w.rng.IntN(20); {
	case r == nil || n == 0:
		w.create()
	case n < 6:
		w.agent(r)
	case n == 6 && r.DeletionTimestamp == nil:
		r.DeletionTimestamp = new(metav1.NewTime(w.now))
		if len(r.Finalizers) == 0 {
			delete(w.requests, r.Name)
		}
	default:
		w.manager(r)
	}
	w.judge()
}

// Whatever happens in which order, the pod is held only by requests that will let go of it, and they do, with an
// agent or without.
func TestHolds(t *testing.T) {
	seeds.Each(t, 200, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range 150 {
			w.step()
		}
		w.calm = true
		silent := seed%2 == 0
		for range 12 {
			w.now = w.now.Add(30 * time.Second)
			for _, r := range w.requests {
				if !silent {
					w.agent(r)
				}
				w.manager(r)
			}
			w.judge()
		}
		require.Equal(t, "["+theirs+"]", w.message())
		for _, r := range w.requests {
			require.Equal(t, v1beta1.RecreateCompleted, r.Status.Phase)
			require.Nil(t, r.Spec.TTLSecondsAfterFinished)
			require.False(t, slices.Contains(r.Finalizers, v1beta1.UnreadyAcquiredFinalizer))
		}
	})
}
