package finished_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/finished"
)

func TestJobsExpire(t *testing.T) {
	now := time.Unix(1_000, 0)
	ago := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(-d))) }
	for name, c := range map[string]struct {
		completion *metav1.Time
		ttl        *int32
		deletes    int
		after      time.Duration
	}{
		"never":              {completion: ago(time.Hour)},
		"it has not ended":   {ttl: new(int32(1))},
		"later":              {completion: ago(10 * time.Second), ttl: new(int32(60)), after: 50 * time.Second},
		"now":                {completion: ago(60 * time.Second), ttl: new(int32(60)), deletes: 1},
		"as soon as it ends": {completion: ago(0), ttl: new(int32(0)), deletes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &action.Plan{Now: now}
			finished.Expire(p, &v1beta1.BroadcastJob{}, c.completion, c.ttl)
			assert.Equal(t, c.deletes, p.Count(action.Delete))
			assert.Equal(t, c.after, p.RequeueAfter)
		})
	}
}

func TestLateEditsAreSeen(t *testing.T) {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	assert.True(t, finished.EditedLate(&action.Plan{}, job, 2))
	assert.False(t, finished.EditedLate(&action.Plan{}, job, 3))
	assert.False(t, finished.EditedLate(&action.Plan{}, job, 0), "OpenKruise tells of none")
	assert.False(t, finished.EditedLate(&action.Plan{Steps: []action.Step{{}}}, job, 2), "the next pass tells")
}
