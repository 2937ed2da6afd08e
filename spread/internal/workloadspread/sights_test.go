package workloadspread

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Clocks of webhooks may be wrong: what comes while the controller looks counts from then on.
func TestEntriesCountFromTheirFirstSight(t *testing.T) {
	at := func(seconds int) time.Time { return gen.Epoch().Add(time.Duration(seconds) * time.Second) }
	spread := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	has := func(places map[string]int) {
		e := v1beta1.SubsetStatus{Name: "a", CreatingPods: map[string]metav1.Time{}, DeletingPods: map[string]metav1.Time{"d": metav1.NewTime(at(0))}}
		for id, seconds := range places {
			e.CreatingPods[id] = metav1.NewTime(at(seconds))
		}
		spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{"v": {e}}
	}
	s := newSights()
	look := func(now int) map[string]time.Time {
		since := map[string]time.Time{}
		for e, t := range s.look(spread, at(now)) {
			since[e.ID] = t
		}
		return since
	}
	has(map[string]int{"old": 5, "ahead": 300})
	assert.Equal(t, map[string]time.Time{"old": at(5), "ahead": at(20), "d": at(0)}, look(20), "nobody has seen it before")
	has(map[string]int{"ahead": 300, "behind": -100, "later": 500})
	assert.Equal(t, map[string]time.Time{"ahead": at(20), "behind": at(21), "later": at(21), "d": at(0)}, look(21))
	has(map[string]int{"ahead": 22})
	assert.Equal(t, map[string]time.Time{"ahead": at(22), "d": at(0)}, look(22), "the place was taken anew")
	spread.UID = "2"
	assert.Equal(t, map[string]time.Time{"ahead": at(22), "d": at(0)}, look(30), "it is another spread")
	s.Forget(types.NamespacedName{Name: "web"})
	assert.Empty(t, s.bySpread)
}
