// Package finished has the rules that jobs of every kind follow once they have ended. The state of a job goes in, and a
// step of its plan comes out.
package finished

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Expire deletes the job when ttl seconds have passed since its completion. Nil stands for never.
func Expire(p *action.Plan, job action.Object, completion *metav1.Time, ttl *int32) {
	if ttl == nil || completion == nil {
		return
	}
	if left := time.Duration(*ttl)*time.Second - p.Now.Sub(completion.Time); left > 0 {
		p.RequeueWithin(left)
		return
	}
	p.Add(action.Step{Name: "expire", Actions: []action.Action{{
		Verb: action.Delete, Object: job, Reason: "Expired", Message: "ttlSecondsAfterFinished have passed",
	}}})
}

// EditedLate reports whether the status is to follow an edit that changes nothing any more: its observed generation
// shows that the edit was seen. Statuses of OpenKruise have none.
func EditedLate(p *action.Plan, job action.Object, observed int64) bool {
	return len(p.Steps) == 0 && observed != 0 && observed != job.GetGeneration()
}
