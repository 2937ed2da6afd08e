package statefulset

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// inOrder checks that no pod exists before all lower pods are in service, that at most one pod terminates, and that it
// was the highest one when it was deleted. It records the order in which pods are created and deleted.
type inOrder struct {
	came, went []string
	leaving    map[string]bool
}

func (o *inOrder) check(pods story.Pods) error {
	var all []*corev1.Pod
	for _, p := range pods {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return compareOrdinals(a.Name, b.Name) })
	terminating := 0
	for i, p := range all {
		if !slices.Contains(o.came, p.Name) {
			o.came = append(o.came, p.Name)
			for _, lower := range all[:i] {
				if !story.IsReady(lower) {
					return story.Want(false, "%s was made while %s was not ready", p.Name, lower.Name)
				}
			}
		}
		if p.DeletionTimestamp == nil {
			continue
		}
		terminating++
		if !o.leaving[p.Name] {
			o.leaving[p.Name] = true
			o.went = append(o.went, p.Name)
			if i != len(all)-1 {
				return story.Want(false, "%s was deleted while %s existed", p.Name, all[i+1].Name)
			}
		}
	}
	return story.Want(terminating <= 1, "%d pods are on their way out", terminating)
}

func compareOrdinals(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

func TestOrderedReadyComesUpAndGoesDownInOrder(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4, ordered, reserve(2))
	watched := &inOrder{leaving: map[string]bool{}}
	end := world.Always(t, set.Namespace, watched.check)
	givenSet(t, set)
	assert.Equal(t, []string{"web-0", "web-1", "web-3", "web-4"}, watched.came)
	assert.Empty(t, watched.went)
	rolls(t, set, replicas(0))
	end()
	assert.Equal(t, []string{"web-4", "web-3", "web-1", "web-0"}, watched.went)
	assert.Empty(t, podsOf(t, set))
}

// Higher pods wait for a pod that is not available, and the set's condition names that pod.
func TestOrderedReadyWaitsForWhoeverIsNotReady(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3, ordered, neverReady)
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Reaches(t, world, set, "a word on web-0", func(set *v1beta1.StatefulSet) error {
		c := story.Condition(set, "Ready")
		return story.Want(c.Status == "False" && set.Status.Replicas == 1, "condition Ready is %+v, status %+v", c, set.Status)
	})
	assert.Equal(t, []string{"web-0"}, names(podsOf(t, set)))
	rolls(t, set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].ReadinessProbe = nil })
}

func neverReady(set *v1beta1.StatefulSet) {
	set.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/no-such-command"}}}, PeriodSeconds: 1,
	}
}
