package workloadspread

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// Users look up in the feature's page, and in that of conditions and events, what events and conditions say.
func TestThePageExplainsEveryWord(t *testing.T) {
	docs.Feature(t, "workloadspread", "reference/events").Names(plan.Reasons, []string{
		v1beta1.SubsetSchedulable, v1beta1.ReasonSufficient, v1beta1.ReasonPodUnschedulable, v1beta1.ReasonUnknown,
		v1beta1.TargetFound, v1beta1.ReasonFound, v1beta1.ReasonNotFound, v1beta1.ReasonUnreadable,
		v1beta1.AllPlaced, v1beta1.ReasonPlaced, v1beta1.ReasonWithoutSubset,
		v1beta1.RescheduleLimited, v1beta1.ReasonBackoffLimit, v1beta1.Overlapped, v1beta1.ReasonOlderWorkloadSpread,
	})
}
