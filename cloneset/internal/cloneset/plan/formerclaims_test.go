package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// mounting lets the first container mount the volumes, and no others.
func mounting(names ...string) setOption {
	return func(s *v1beta1.CloneSet) {
		mounts := []corev1.VolumeMount{}
		for _, name := range names {
			mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = mounts
	}
}

// unclaimed removes the claim template log and what mounts it; reclaimed brings both back.
func unclaimed(s *v1beta1.CloneSet) {
	s.Spec.VolumeClaimTemplates = slices.DeleteFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == "log" })
	mounting("data")(s)
}

func reclaimed(s *v1beta1.CloneSet) {
	unclaimed(s)
	claimed("log")(s)
	mounting("data", "log")(s)
}

// withoutLog is a set whose claim template log was removed, with a partition that keeps two pods, of which there is one.
func withoutLog(t *testing.T, replicas int32, options ...setOption) *world {
	t.Helper()
	w := given(t, replicas, append([]setOption{claimed("data", "log"), mounting("data", "log"), partition("2")}, options...)...)
	w.old(1)
	unclaimed(w.set)
	w.revisions[1] = revisionOf(t, w, w.set.Spec.Template)
	return w
}

func TestPodsOfAnOlderRevisionGetTheClaimsThatTheyMount(t *testing.T) {
	w := withoutLog(t, 4, reusing).claim("data", "fresh").claim("data", "whole").claim("log", "whole")
	creates := created(t, w.plan())
	require.Len(t, creates, 3)
	volumes := func(a action.Action) map[string]string {
		claims := map[string]string{}
		for _, v := range a.Object.(*corev1.Pod).Spec.Volumes {
			claims[v.Name] = v.PersistentVolumeClaim.ClaimName
		}
		return claims
	}
	assert.Equal(t, map[string]string{"data": "data-web-whole", "log": "log-web-whole"}, volumes(creates[0]), "of the older revision")
	assert.Equal(t, map[string]string{"data": "data-web-fresh"}, volumes(creates[1]), "of the update revision")
	w.claims[2].OwnerReferences = nil
	assert.Len(t, created(t, w.plan()), 2, "the claim is not the set's")
	assert.Equal(t, []string{WaitClaimTemplateRemoved}, w.waits())
}

func TestPodsThatCannotBeMadeWithoutAClaimTemplateAreTold(t *testing.T) {
	w := withoutLog(t, 3).updated(1)
	assert.Equal(t, outcome{}, w.outcome(), "and the server is not asked in vain")
	status := Status(w.snapshot(), w.plan(), action.Failures{})
	for _, c := range []string{v1beta1.CloneSetFailedScale, conditions.Stalled} {
		require.NotNil(t, conditions.Get(status.Conditions, c), c)
		assert.Contains(t, conditions.Get(status.Conditions, c).Message, "1 pods of revision "+short(w.revisions[0])+" cannot be created: the claim template of volume log was removed", c)
	}
	w.set.Status = status
	assert.Empty(t, w.plan().RefusedVerbs, "nothing was refused")
	assert.Equal(t, []string{WaitClaimTemplateRemoved}, w.waits())
	reclaimed(w.set)
	assert.Len(t, created(t, w.plan()), 1, "with its claims")
	w = withoutLog(t, 3, partition("3")).updated(2)
	w.featureGates.PartitionRollback = true
	assert.Equal(t, outcome{}, w.outcome(), "no pod goes that could not come back")
	assert.Contains(t, w.waits(), WaitClaimTemplateRemoved)
}

// A claim template comes and goes in the middle of everything, and pods that are lost are made as long as they can be:
// the server refuses a pod that mounts a volume which nothing declares.
func TestClaimTemplatesComeAndGo(t *testing.T) {
	t.Parallel()
	walk := worlds(claimed("data", "log"), mounting("data", "log"), notInPlaceOnly)
	start := walk.Start
	walk.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := start(t, seed)
		rng := rand.New(rand.NewPCG(seed, 11))
		for range 1 + rng.IntN(4) {
			change := []setOption{unclaimed, reclaimed}[rng.IntN(2)]
			w.EditAfter(time.Duration(rng.IntN(240))*time.Second, func() { edit(w, change, notInPlaceOnly, valid) })
		}
		w.EditAfter(5*time.Minute, func() { edit(w, reclaimed, notInPlaceOnly, valid) })
		return w, p
	}
	walk.Faults = func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign, f.Actors = 60, 0.15, []simulate.Actor{simulate.EvictsPods, simulate.DeletesPods}
		return f
	}
	walk.Run(t)
}

// notInPlaceOnly: no pod gets another volume in place.
func notInPlaceOnly(s *v1beta1.CloneSet) {
	if r := s.Spec.UpdateStrategy.RollingUpdate; r.PodUpdatePolicy == v1beta1.InPlaceOnly {
		r.PodUpdatePolicy = v1beta1.InPlaceIfPossible
	}
}
