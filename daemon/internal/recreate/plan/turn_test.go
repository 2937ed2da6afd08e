package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

func TestOneRequestForAPodHasItsTurn(t *testing.T) {
	of := func(name string, second int, options ...option) *v1beta1.ContainerRecreateRequest {
		return request(append([]option{func(r *v1beta1.ContainerRecreateRequest) {
			r.Name, r.UID, r.CreationTimestamp = name, types.UID(name), metav1.NewTime(at(second))
		}}, options...)...)
	}
	pending, recreating := phase(v1beta1.RecreatePending), phase(v1beta1.RecreateRecreating)
	for name, tt := range map[string]struct {
		all   []*v1beta1.ContainerRecreateRequest
		first string
		waits []string
	}{
		"none":                      {nil, "", nil},
		"one":                       {[]*v1beta1.ContainerRecreateRequest{of("a", 1)}, "a", nil},
		"the oldest":                {[]*v1beta1.ContainerRecreateRequest{of("a", 2), of("b", 1, pending), of("c", 2)}, "b", []string{"a", "c"}},
		"the name decides":          {[]*v1beta1.ContainerRecreateRequest{of("b", 1), of("a", 1)}, "a", []string{"b"}},
		"one that has begun":        {[]*v1beta1.ContainerRecreateRequest{of("a", 1, pending), of("b", 2, recreating)}, "b", []string{"a"}},
		"two that have begun":       {[]*v1beta1.ContainerRecreateRequest{of("a", 1, recreating), of("b", 2, recreating)}, "a", nil},
		"one that has ended":        {[]*v1beta1.ContainerRecreateRequest{of("a", 1, completed), of("b", 2, pending)}, "b", nil},
		"one that is being deleted": {[]*v1beta1.ContainerRecreateRequest{of("a", 1, recreating, deleted), of("b", 2, pending)}, "b", nil},
		"one that holds the pod":    {[]*v1beta1.ContainerRecreateRequest{of("a", 1), of("b", 2, pending, finalizer)}, "a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			first := ""
			if r := plan.First(tt.all); r != nil {
				first = r.Name
			}
			assert.Equal(t, tt.first, first)
			var waits []string
			for _, r := range tt.all {
				if plan.Waits(r, tt.all) {
					waits = append(waits, r.Name)
				}
			}
			assert.Equal(t, tt.waits, waits)
		})
	}
}

// Of a pod that was not read nothing is known, and the deadline counts all the same.
func TestARequestThatWaitsEndsByItsDeadlineOnly(t *testing.T) {
	compute := func(now int) plan.Plan {
		return plan.Compute(plan.Snapshot{
			Request: request(phase(v1beta1.RecreatePending), deadline), Waits: true, FirstSeen: at(0), LastSign: at(now), Now: at(now), Clock: here,
		})
	}
	early := compute(29).Status(action.Failures{})
	assert.Equal(t, v1beta1.RecreatePending, early.Phase)
	late := compute(30).Status(action.Failures{})
	assert.Equal(t, v1beta1.RecreateCompleted, late.Phase)
	assert.Equal(t, plan.MessageDeadline, late.Message)
}
