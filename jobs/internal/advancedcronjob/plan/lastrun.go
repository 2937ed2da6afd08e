package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// tellLastRun sets the condition that shows whether the run that ended last has succeeded. Jobs that have ended may be
// gone, so the condition stays as it is until a job or status.lastSuccessfulTime shows a later end.
func (p *pass) tellLastRun() {
	var last *Child
	for i := range p.Children {
		if c := &p.Children[i]; c.State == Failed && (last == nil || c.Ended.After(last.Ended)) {
			last = c
		}
	}
	succeeded := TimeOf(p.status.LastSuccessfulTime)
	before := meta.FindStatusCondition(p.status.Conditions, v1beta1.CronJobLastRunSucceeded)
	switch {
	case last != nil && last.Ended.After(succeeded):
		p.setLastRun(metav1.ConditionFalse, ReasonRunFailed, fmt.Sprintf("%s %s has failed", last.Kind, last.Object.GetName()))
	case succeeded.After(TimeOf(p.Cron.Status.LastSuccessfulTime)), before == nil && !succeeded.IsZero():
		p.setLastRun(metav1.ConditionTrue, ReasonRunSucceeded, "a job completed at "+succeeded.UTC().Format(time.RFC3339))
	}
}

func (p *pass) setLastRun(status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type:               v1beta1.CronJobLastRunSucceeded,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: p.Cron.Generation,
		LastTransitionTime: metav1.NewTime(p.Now),
	})
}
