package result_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

func state(name string, phase v1beta1.RecreatePhase, message string) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: name, Phase: phase, Message: message}
}

// held is a request for containers a and b that has held its pod not ready.
func held() *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{}
	r.Spec.Containers = []v1beta1.ContainerToRecreate{{Name: "a"}, {Name: "b"}}
	r.Status.Conditions = []metav1.Condition{{Type: v1beta1.PreRecreateGrace, Status: metav1.ConditionTrue}}
	return r
}

func TestEnded(t *testing.T) {
	now := metav1.NewTime(gen.Epoch())
	done, failed, pending := v1beta1.RecreateSucceeded, v1beta1.RecreateFailed, v1beta1.RecreatePending
	for name, tt := range map[string]struct {
		states                []v1beta1.ContainerRecreateState
		kind, reason, message string
	}{
		"all": {[]v1beta1.ContainerRecreateState{state("a", done, ""), state("b", done, "")},
			"Complete", result.ReasonContainersRecreated, "2 of 2 containers recreated"},
		"one has failed": {[]v1beta1.ContainerRecreateState{state("a", failed, "kill container error: no answer"), state("b", pending, "")},
			"Failed", result.ReasonContainersNotRecreated,
			`0 of 2 containers recreated: container "a" is Failed, kill container error: no answer; container "b" is Pending`},
		"one has failed, and the others were recreated": {[]v1beta1.ContainerRecreateState{state("a", failed, ""), state("b", done, "")},
			"Failed", result.ReasonContainersNotRecreated, `1 of 2 containers recreated: container "a" is Failed`},
		"many have failed": {[]v1beta1.ContainerRecreateState{state("a", failed, ""), state("b", failed, ""), state("c", failed, ""), state("d", failed, ""), state("e", failed, "")},
			"Failed", result.ReasonContainersNotRecreated,
			`0 of 5 containers recreated: container "a" is Failed; container "b" is Failed; container "c" is Failed; and 2 more`},
	} {
		t.Run(name, func(t *testing.T) {
			r := held()
			got := result.Ended(r, tt.states, now)
			assert.Equal(t, held(), r)
			assert.Equal(t, []metav1.Condition{r.Status.Conditions[0], {
				Type: tt.kind, Status: metav1.ConditionTrue, LastTransitionTime: now, Reason: tt.reason, Message: tt.message,
			}}, got)
		})
	}
}

// The API server refuses conditions with longer messages than 32 KiB.
func TestALongMessageIsCut(t *testing.T) {
	states := []v1beta1.ContainerRecreateState{state("a", v1beta1.RecreateFailed, strings.Repeat("ä", 100_000)), state("b", v1beta1.RecreateSucceeded, "")}
	got := result.Ended(held(), states, metav1.NewTime(gen.Epoch()))[1].Message
	assert.Less(t, len(got), 1000)
	assert.True(t, strings.HasSuffix(got, "ä"), got)
}

func TestEarly(t *testing.T) {
	now := metav1.NewTime(gen.Epoch())
	r := held()
	assert.Equal(t, "too late: 0 of 2 containers recreated", result.Early(r, result.ReasonDeadlineExceeded, "too late", now)[1].Message, "no agent has seen it")
	r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateState{state("a", v1beta1.RecreateSucceeded, ""), state("b", v1beta1.RecreateRecreating, "")}
	assert.Equal(t, []metav1.Condition{r.Status.Conditions[0], {
		Type: "Failed", Status: metav1.ConditionTrue, LastTransitionTime: now, Reason: result.ReasonDeadlineExceeded,
		Message: "too late: 1 of 2 containers recreated",
	}}, result.Early(r, result.ReasonDeadlineExceeded, "too late", now))
}
