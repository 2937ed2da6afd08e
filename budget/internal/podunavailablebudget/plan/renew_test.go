package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// What admission has granted since the pods were read counts, and does not end by what they were then. Grants that
// somebody has ended, and edits, have the pods read anew.
func TestAPlanIsRenewedBesideGrants(t *testing.T) {
	all, young := ready(4), named("young")
	b := budget(maxUnavailable("2"), granted(all[0], del, time.Minute))
	s := Snapshot{Budget: b, Pods: all, Workloads: workload(4), Sights: seen(b, time.Second), Now: now}

	newer := b.DeepCopy()
	granted(all[1], del, 0)(newer)
	granted(young, del, 0)(newer) // the cache does not have it yet
	p, ok := s.Renew(newer)
	require.True(t, ok)
	assert.Len(t, p.Status.DisruptedPods, 3)
	assert.EqualValues(t, 2, p.Status.CurrentAvailable)
	assert.Positive(t, p.RequeueAfter)
	assert.Len(t, b.Status.DisruptedPods, 1)

	s.Pods = append(s.Pods[1:], gen.Pod(all[0].Name, gen.Terminating()))
	p, ok = s.Renew(newer)
	require.True(t, ok)
	assert.NotContains(t, p.Status.DisruptedPods, all[0].Name, "it was seen to go")

	ended, edited := b.DeepCopy(), b.DeepCopy()
	ended.Status.DisruptedPods = nil
	_, ok = s.Renew(ended)
	assert.False(t, ok)
	edited.Generation++
	_, ok = s.Renew(edited)
	assert.False(t, ok)
}
