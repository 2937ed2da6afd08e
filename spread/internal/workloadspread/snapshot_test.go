package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// slowly answers after some milliseconds, with an error for pods of some names.
type slowly struct {
	client.Reader

	errs       map[string]error
	busy, most atomic.Int32
}

func (s *slowly) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	n := s.busy.Add(1)
	defer s.busy.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	<-time.After(5 * time.Millisecond)
	o.SetName(key.Name)
	o.SetUID(types.UID(key.Name))
	return s.errs[key.Name]
}

// Thousands of pods can be older than a spread whose patches decide about them.
func TestWholePodsAreReadSomeAtATime(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 100 {
		pods = append(pods, gen.Pod(fmt.Sprint("p", i)))
	}
	live := &slowly{errs: map[string]error{"p7": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p7")}}
	r := &Snapshots{SnapshotOptions: SnapshotOptions{Live: live}}
	found, err := r.whole(t.Context(), pods)
	require.NoError(t, err)
	assert.Equal(t, 99, len(found)) //nolint:testifylint // a failure would print all of them
	assert.Equal(t, "p8", found["p8"].Name)
	assert.EqualValues(t, lookups, live.most.Load())
	live.errs["p9"] = errors.New("no answer")
	_, err = r.whole(t.Context(), pods)
	assert.ErrorContains(t, err, "read pod default/p9: no answer")
}
