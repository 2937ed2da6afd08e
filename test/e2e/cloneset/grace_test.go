package cloneset

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const grace = 3 * time.Second

func withGrace(set *v1beta1.CloneSet) {
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: int32(grace.Seconds())}
}

// The pod leaves service, and its image changes only after the grace period.
func TestGracePeriodComesBeforeTheChange(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, withGrace)
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	inGrace, outOfService := 0, 0
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			if _, ok := o.Annotations[contract.InPlaceUpdateGraceAnnotation]; ok {
				inGrace++
				if !story.IsReady(o) { // the kubelet takes a moment
					outOfService++
				}
				gate := story.PodCondition(o, contract.InPlaceUpdateReady).Status
				if image := o.Spec.Containers[0].Image; image != app+"v1" || gate != corev1.ConditionFalse {
					return story.Want(false, "in grace the pod has image %s and its gate is %s", image, gate)
				}
			}
		}
		return nil
	})
	rolls(t, set, image("v2"))
	end()
	assert.Positive(t, inGrace)
	assert.Positive(t, outOfService)
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
	assert.GreaterOrEqual(t, timeInGrace(t, &podsOf(t, set)[0]), grace)
}

// A kubelet that repeats an old report does so within ten seconds. In a longer grace period nobody sees the pod ready once
// it is not, and its image changes only after that.
func TestNobodySeesAPodReadyInItsGracePeriod(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, withGrace, func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy.GracePeriodSeconds = 35
	})
	givenSet(t, set)
	left := map[types.UID]bool{}
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			if story.PodCondition(o, contract.InPlaceUpdateReady).Status != corev1.ConditionFalse {
				continue
			}
			if story.IsReady(o) {
				if image := o.Spec.Containers[0].Image; left[o.UID] || image != app+"v1" {
					return story.Want(false, "pod %s with image %s is ready out of service", o.Name, image)
				}
			} else {
				left[o.UID] = true
			}
		}
		return nil
	})
	rolls(t, set, image("v2"))
	end()
	assert.Len(t, left, 1)
}

// timeInGrace returns the time from the start of the last update to the change of the image.
func timeInGrace(t *testing.T, o *corev1.Pod) time.Duration {
	t.Helper()
	var state struct {
		UpdateTimestamp        time.Time
		ContainerBatchesRecord []struct{ Timestamp time.Time }
	}
	require.NoError(t, json.Unmarshal([]byte(o.Annotations[contract.InPlaceUpdateStateAnnotation]), &state))
	require.Len(t, state.ContainerBatchesRecord, 1)
	return state.ContainerBatchesRecord[0].Timestamp.Sub(state.UpdateTimestamp)
}

func TestEditsWithinTheGracePeriodArriveAtTheLast(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, withGrace)
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	edit(t, set, image("v2"))
	world.PodIn(t, set.Namespace, contract.LifecycleUpdating)
	edit(t, set, image("v1"))
	edit(t, set, image("v3"))
	settles(t, set)
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
	assert.Equal(t, []string{app + "v3"}, story.Images(podsOf(t, set)))
}
