package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// The time to live counts from when the manager first saw the result, whatever the clock of the node says.
func TestTheTimeToLiveHasOneClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"a node that is right": 0, "behind": -24 * time.Hour, "ahead": 24 * time.Hour} {
		for _, restarted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := nodeImage(func(o *v1beta1.NodeImage) {
					o.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{
						Tag: "1", CreatedAt: new(metav1.NewTime(now)), PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(600))},
					}}}}
				})
				seen := &Sightings{}
				stays := func(after time.Duration) bool {
					s := Snapshot{Name: "n1", Node: node(), Image: o, Now: now.Add(after), Seen: seen.See(o, now.Add(after))}
					return clean(s, &Plan{})["app"] == nil && len(clean(s, &Plan{})) == 0
				}
				assert.True(t, stays(0))
				o.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"app": {Tags: []v1beta1.ImageTagStatus{{
					Tag: "1", Phase: v1beta1.ImageSucceeded, CompletionTime: new(metav1.NewTime(now.Add(time.Minute + skew))),
				}}}}
				assert.True(t, stays(time.Minute))
				if restarted {
					seen = &Sightings{}
				}
				assert.True(t, stays(9*time.Minute))
				if !restarted || skew <= 0 {
					assert.False(t, stays(11*time.Minute+time.Second))
				}
			})
		}
	}
}

// A NodeImage that is made anew under its name has none of the results of the one before.
func TestSightingsAreOfOneObject(t *testing.T) {
	seen, o := &Sightings{}, nodeImage()
	o.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{Tag: "1"}}}}
	assert.Empty(t, seen.See(o, now).Ended)
	o.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"app": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", CompletionTime: new(metav1.NewTime(now))}}}}
	assert.Len(t, seen.See(o, now).Ended, 1)
	o.UID = "another"
	assert.Empty(t, seen.See(o, now).Ended, "it was there at the first look")
}
