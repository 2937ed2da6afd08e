package budget

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// A budget lets none of the pods go. The set's surge pod stands in for them, one after the other.
func TestASurgePodSatisfiesABudgetThatLetsNoPodGo(t *testing.T) {
	t.Parallel()
	for _, policy := range []clonesets.PodUpdatePolicy{clonesets.ReCreate, clonesets.InPlaceIfPossible} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			const replicas = 2
			set := newCloneSet(world.Namespace(t), replicas, policy)
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
			require.NoError(t, world.Client.Create(t.Context(), set))
			settles(t, set, "v1", replicas)
			givenBudget(t, atLeast(set.Namespace, replicas), replicas)
			givenDisruptionBudget(t, set.Namespace, replicas)
			end := world.Always(t, set.Namespace, func(pods story.Pods) error {
				active := 0
				for _, o := range pods {
					if o.DeletionTimestamp == nil {
						active++
					}
				}
				if active > replicas+1 {
					return story.Want(false, "%d pods are active", active)
				}
				return story.AtLeastReady(replicas)(pods)
			})
			rollout := forecasts.Edit(t, world, set, runs("v2"))
			settles(t, set, "v2", replicas)
			rollout.ComesTrue(t)
			end()
			assert.EqualValues(t, replicas, set.Status.UpdatedReadyReplicas)
		})
	}
}
