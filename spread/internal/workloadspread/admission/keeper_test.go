package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // the story is about answers that a real server gives only by chance
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

var key = types.NamespacedName{Namespace: "shop", Name: "web"}

// server is a server with a spread and counts the writes that it took.
type server struct {
	client.WithWatch
	writes atomic.Int32
	fail   func(n int32) error // the answer to the n-th write, after it was done
}

func newServer(t *testing.T, s *v1beta1.WorkloadSpread, more ...client.Object) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1beta1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	out := &server{fail: func(int32) error { return nil }}
	out.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(more, s)...).WithStatusSubresource(s).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil {
					return err
				}
				return out.fail(out.writes.Add(1))
			},
		}).Build()
	return out
}

// keeper returns a replica whose cache shows the spread as it was at the start.
func (s *server) keeper(t *testing.T) *Keeper {
	t.Helper()
	stale := &v1beta1.WorkloadSpread{}
	require.NoError(t, s.Get(t.Context(), key, stale))
	return &Keeper{
		Live: s, Writer: s, Clock: clock.RealClock{},
		Cached: func(context.Context, types.NamespacedName) (*v1beta1.WorkloadSpread, error) { return stale, nil },
	}
}

// admit returns the name of the subset that a pod gets, empty for none.
func admit(t *testing.T, k *Keeper, id string) (subset string, err error) {
	t.Helper()
	err = k.Enter(t.Context(), key, Request{enter: func(b *subsets.Books, gone func(string) bool) {
		subset = ""
		if i := b.Ledger(v1beta1.VersionIgnored).Admit(id, metav1.Now(), gone); i != subsets.None {
			subset = b.Spread().Spec.Subsets[i].Name
		}
	}})
	return subset, err
}

// placing is the request for a place of a pod.
func placing(id string) *Request {
	return &Request{enter: func(b *subsets.Books, gone func(string) bool) {
		b.Ledger(v1beta1.VersionIgnored).Admit(id, metav1.Now(), gone)
	}}
}

// R1, R2, R4: two replicas fill each subset to its limit and not beyond, with far fewer writes than pods.
func TestReplicasNeverGiveAPlaceAwayTwice(t *testing.T) {
	const limit, pods = 60, 200
	s := newServer(t, spread(t, fmt.Sprintf("%ssubsets: [{name: a, maxReplicas: %d}, {name: b, maxReplicas: %d}]", target, limit, limit)))
	keepers := []*Keeper{s.keeper(t), s.keeper(t)}
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			subset, err := admit(t, keepers[i%2], fmt.Sprint("pod-", i))
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			got[subset]++
		})
	}
	all.Wait()
	assert.Equal(t, map[string]int{"a": limit, "b": limit, "": pods - 2*limit}, got)
	assert.Less(t, s.writes.Load(), int32(limit), "pods that come together share a write")
}

func TestALostAnswerTakesOnePlace(t *testing.T) {
	s := newServer(t, spread(t, target+"subsets: [{name: a, maxReplicas: 2}, {name: b}]"))
	s.fail = func(n int32) error {
		if n == 1 {
			return errors.New("the connection was lost")
		}
		return nil
	}
	subset, err := admit(t, s.keeper(t), "pod")
	require.NoError(t, err)
	assert.Equal(t, "a", subset)
	stored := &v1beta1.WorkloadSpread{}
	require.NoError(t, s.Get(t.Context(), key, stored))
	assert.Len(t, stored.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored][0].CreatingPods, 1)
}

func TestWhatTheServerRefusesIsAnError(t *testing.T) {
	s := newServer(t, spread(t, target+"subsets: [{name: a, maxReplicas: 2}]"))
	s.fail = func(int32) error {
		return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("x").GroupResource(), "web", nil)
	}
	k := s.keeper(t)
	for range 10 {
		_, err := admit(t, k, "pod")
		require.ErrorContains(t, err, "update the status of workload spread shop/web")
	}
	assert.EqualValues(t, 1, s.writes.Load(), "a pause follows")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.keeper(t).Enter(ctx, key, Request{enter: func(*subsets.Books, func(string) bool) {}})
	assert.True(t, err == nil || errors.Is(err, context.Canceled))
}

func TestASpreadThatIsGoneIsTold(t *testing.T) {
	s := newServer(t, spread(t, target+"subsets: [{name: a, maxReplicas: 2}]"))
	k := s.keeper(t)
	before := &v1beta1.WorkloadSpread{}
	require.NoError(t, s.Get(t.Context(), key, before))
	require.NoError(t, s.Delete(t.Context(), before))
	_, err := admit(t, k, "pod")
	assert.True(t, apierrors.IsNotFound(err), err)
}

// A deletion that others refused frees no place.
func TestPlacesOfDeletedPodsAreLookedUp(t *testing.T) {
	full := spread(t, target+"subsets: [{name: a, maxReplicas: 1}, {name: b}]")
	full.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{
		Name: "a", Replicas: 1, DeletingPods: map[string]metav1.Time{"old": metav1.Now()},
	}}}
	for _, runs := range []bool{true, false} {
		var pods []client.Object
		if runs {
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}})
		}
		s := newServer(t, full.DeepCopy(), pods...)
		subset, err := admit(t, s.keeper(t), "new")
		require.NoError(t, err)
		assert.Equal(t, map[bool]string{true: "b", false: "a"}[runs], subset)
	}
}

// A pod that goes past a subset stays where it goes: the server is asked before.
func TestAFullSubsetIsConfirmed(t *testing.T) {
	stored := spread(t, target+"subsets: [{name: a, maxReplicas: 1}, {name: b}]")
	stored.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{Name: "a", Replicas: 1}, {Name: "b"}}}
	s := newServer(t, stored)
	k := s.keeper(t)
	subset, err := admit(t, k, "first")
	require.NoError(t, err)
	assert.Equal(t, "b", subset)
	freed := &v1beta1.WorkloadSpread{}
	require.NoError(t, s.Get(t.Context(), key, freed))
	freed.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored][0].Replicas = 0
	require.NoError(t, s.Status().Update(t.Context(), freed))
	subset, err = admit(t, k, "second")
	require.NoError(t, err)
	assert.Equal(t, "a", subset, "the cache does not show it yet")
}
