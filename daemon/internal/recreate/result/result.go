package result

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	// namedAtMost is how many containers a message names.
	namedAtMost = 3
	// longestText is the number of bytes of a container's message that a condition quotes.
	longestText = 500
)

// Ended returns the conditions of a request that has ended in its turn: Complete if each of its containers has been
// recreated, otherwise Failed. The given ones are not changed.
func Ended(r *v1beta1.ContainerRecreateRequest, states []v1beta1.ContainerRecreateState, at metav1.Time) []metav1.Condition {
	var left []string
	for _, s := range states {
		if s.Phase != v1beta1.RecreateSucceeded {
			left = append(left, describe(s))
		}
	}
	if len(left) == 0 {
		return with(r, v1beta1.RecreateComplete, ReasonContainersRecreated, recreated(states), at)
	}
	text := strings.Join(left[:min(len(left), namedAtMost)], "; ")
	if more := len(left) - namedAtMost; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return with(r, v1beta1.RecreateNotComplete, ReasonContainersNotRecreated, recreated(states)+": "+text, at)
}

// Early returns the conditions of a request that has ended before its containers were recreated.
func Early(r *v1beta1.ContainerRecreateRequest, reason, message string, at metav1.Time) []metav1.Condition {
	states := make([]v1beta1.ContainerRecreateState, len(r.Spec.Containers))
	copy(states, r.Status.ContainerRecreateStates)
	return with(r, v1beta1.RecreateNotComplete, reason, message+": "+recreated(states), at)
}

func recreated(states []v1beta1.ContainerRecreateState) string {
	done := 0
	for _, s := range states {
		if s.Phase == v1beta1.RecreateSucceeded {
			done++
		}
	}
	return fmt.Sprintf("%d of %d containers recreated", done, len(states))
}

func describe(s v1beta1.ContainerRecreateState) string {
	text := fmt.Sprintf("container %q is %s", s.Name, s.Phase)
	if s.Message != "" {
		text += ", " + strings.ToValidUTF8(s.Message[:min(len(s.Message), longestText)], "")
	}
	return text
}

func with(r *v1beta1.ContainerRecreateRequest, kind, reason, message string, at metav1.Time) []metav1.Condition {
	all := slices.Clone(r.Status.Conditions)
	meta.SetStatusCondition(&all, metav1.Condition{
		Type:               kind,
		Status:             metav1.ConditionTrue,
		LastTransitionTime: at,
		Reason:             reason,
		Message:            message,
	})
	return all
}
