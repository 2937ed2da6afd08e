package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func TestTheOlderSpreadPrecedes(t *testing.T) {
	a, b := given("a"), given("a")
	b.UID = "x-uid"
	assert.True(t, subsets.Precedes(a, b), "of two that are as old as each other the UIDs decide")
	assert.False(t, subsets.Precedes(b, a))
	a.CreationTimestamp = metav1.NewTime(gen.Epoch().Add(time.Second))
	assert.True(t, subsets.Precedes(b, a))
	assert.False(t, subsets.Precedes(a, b))
}

func TestASpreadTellsWhoHasItsPods(t *testing.T) {
	s := snapshot(given("a=2 b"))
	s.Overlap = Overlap{Rival: "older", Pods: 3, Of: 3}
	p := compute(t, s)
	assert.Empty(t, p.Steps)
	told := func(status *v1beta1.WorkloadSpreadStatus) *metav1.Condition {
		return meta.FindStatusCondition(status.Conditions, v1beta1.Overlapped)
	}
	require.NotNil(t, told(p.Status))
	assert.Equal(t, "3 of 3 pods belong to WorkloadSpread older, which is older and has the same workload: delete one of the two", told(p.Status).Message)

	s.Spread.Status, s.Now = *p.Status, s.Now.Add(time.Minute)
	assert.Equal(t, p.Status.Conditions, compute(t, s).Status.Conditions, "nothing has changed")
	s.Overlap = Overlap{}
	assert.Nil(t, told(compute(t, s).Status))
}
