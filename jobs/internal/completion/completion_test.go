package completion_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
)

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		policy v1beta1.CompletionPolicy
		want   string
	}{
		"the default": {},
		"bounded":     {policy: v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(0)), TTLSecondsAfterFinished: new(int32(0))}},
		"negative": {
			policy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: new(int64(-1)), TTLSecondsAfterFinished: new(int32(-1))},
			want: "[p.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0, " +
				"p.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0]",
		},
		"never": {
			policy: v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever, ActiveDeadlineSeconds: new(int64(1)), TTLSecondsAfterFinished: new(int32(1))},
			want: "[p.activeDeadlineSeconds: Forbidden: can only be set when the type is Always, " +
				"p.ttlSecondsAfterFinished: Forbidden: can only be set when the type is Always]",
		},
		"unknown": {policy: v1beta1.CompletionPolicy{Type: "Later"}, want: `p.type: Unsupported value: "Later": supported values: "Always", "Never"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := completion.Validate(&c.policy, field.NewPath("p")).ToAggregate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}

func TestEditsOfEndedJobsAreAnsweredWithAWarning(t *testing.T) {
	end := new(metav1.Now())
	assert.Empty(t, completion.NoEffect(nil, "before", "after"))
	assert.Empty(t, completion.NoEffect(end, "same", "same"))
	assert.Equal(t, []string{"the job has ended: this change of spec has no effect"}, completion.NoEffect(end, "before", "after"))
}

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
			completion.Expire(p, &v1beta1.BroadcastJob{}, c.completion, c.ttl)
			assert.Equal(t, c.deletes, p.Count(action.Delete))
			assert.Equal(t, c.after, p.RequeueAfter)
		})
	}
}

func TestLateEditsAreSeen(t *testing.T) {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	busy := action.Plan{Steps: []action.Step{{Actions: []action.Action{{Verb: action.Delete, Object: job}}}}}
	assert.True(t, completion.EditedLate(&action.Plan{}, job, 2))
	assert.False(t, completion.EditedLate(&action.Plan{}, job, 3))
	assert.False(t, completion.EditedLate(&action.Plan{}, job, 0), "OpenKruise tells of none")
	assert.False(t, completion.EditedLate(&busy, job, 2), "the next pass tells")
}
