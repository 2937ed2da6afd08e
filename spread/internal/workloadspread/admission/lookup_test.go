package admission

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// counting is a server that counts questions for pods, and answers when they may.
type counting struct {
	client.Reader
	asked, atOnce, most atomic.Int32
	running             map[string]bool
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, isPod := o.(*metav1.PartialObjectMetadata); !isPod {
		return c.Reader.Get(ctx, key, o, opts...)
	}
	c.asked.Add(1)
	now := c.atOnce.Add(1)
	defer c.atOnce.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
		continue
	}
	select {
	case <-time.After(5 * time.Millisecond): // a server takes a while
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.running[key.Name] {
		return nil
	}
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("pods").GroupResource(), key.Name)
}

// leavers is a spread of whose pods so many are noted to be about to go.
func leavers(n int) *v1beta1.WorkloadSpread {
	e := v1beta1.SubsetStatus{Name: "a", Replicas: int32(n), DeletingPods: map[string]metav1.Time{}}
	for i := range n {
		e.DeletingPods[fmt.Sprintf("p%03d", i)] = metav1.Now()
	}
	s := &v1beta1.WorkloadSpread{}
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {e}}
	return s
}

// Many pods that are noted to go are looked up several at a time, and those that have gone once.
func TestGonePodsAreAskedForOnce(t *testing.T) {
	server := &counting{running: map[string]bool{"p005": true}}
	l := &lookup{live: server, known: map[string]bool{}}
	base := leavers(100)
	for range 3 {
		l.begin(t.Context(), base, []*Request{{pod: "p099"}})
		for i := range 50 {
			assert.Equal(t, i != 5, l.gone(t.Context(), fmt.Sprintf("p%03d", i)))
		}
	}
	assert.EqualValues(t, lookups, server.most.Load())
	assert.EqualValues(t, 1+50+2*lookups, server.asked.Load(), "that of the request, the ones in question, and with each attempt the one that runs and some more")
}

// Time that is over is no answer: no pod goes to a later subset for it.
func TestAGroupWithoutTimeDecidesNothing(t *testing.T) {
	full := spread(t, target+"subsets: [{name: a, maxReplicas: 1}, {name: b}]")
	full.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{
		Name: "a", Replicas: 1, DeletingPods: map[string]metav1.Time{"old": metav1.Now()},
	}}}
	k := newServer(t, full).keeper(t)
	k.Live = &counting{Reader: k.Live, running: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k.decide([]*Request{placing("new")})(ctx, full)
	require.ErrorIs(t, err, context.Canceled)
}
