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
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// mounting lets the first container mount the volumes, and no others.
func mounting(names ...string) setOption {
	return func(s *v1beta1.StatefulSet) {
		mounts := []corev1.VolumeMount{}
		for _, name := range names {
			mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = mounts
	}
}

// unclaimed removes the claim template log and what mounts it.
func unclaimed(s *v1beta1.StatefulSet) {
	s.Spec.VolumeClaimTemplates = slices.DeleteFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == "log" })
	mounting("data")(s)
}

// withoutLog is a set whose claim template log was removed, with a partition that keeps two pods, of which there is 1.
func withoutLog(t *testing.T, replicas int32) *world {
	t.Helper()
	w := given(t, replicas, claimed("data", "log"), mounting("data", "log"), partition(2)).old(at(1))
	return w.edited(unclaimed).changed()
}

// volumesOf are the volumes and claims of the pod that a plan creates.
func volumesOf(t *testing.T, todo Plan) map[string]string {
	t.Helper()
	claims := map[string]string{}
	for a := range judges.Actions(todo.Steps, stepCreate) {
		pod, ok := a.Object.(*corev1.Pod)
		require.True(t, ok)
		assert.Empty(t, slices.DeleteFunc(slices.Clone(a.Prerequisites), func(o action.Object) bool { return o.GetName() == "data-"+pod.Name }), "no claim is made without its template")
		for _, v := range pod.Spec.Volumes {
			claims[v.Name] = v.PersistentVolumeClaim.ClaimName
		}
	}
	return claims
}

func TestPodsOfAnOlderRevisionGetTheClaimsThatTheyMount(t *testing.T) {
	w := withoutLog(t, 2).claim("data-web-0").claim("log-web-0")
	assert.Equal(t, []string{"create 0 old"}, w.did())
	assert.Equal(t, map[string]string{"data": "data-web-0", "log": "log-web-0"}, volumesOf(t, w.plan()))
	w.claim("log-web-0", going)
	assert.Equal(t, []string{}, w.did())
	assert.Equal(t, []string{"ClaimTerminating log-web-0"}, w.waits())
	w = withoutLog(t, 2).claim("log-web-0").edited(partition(0))
	assert.Equal(t, map[string]string{"data": "data-web-0"}, volumesOf(t, w.plan()), "the update revision does not mount it")
}

func TestPodsThatCannotBeMadeWithoutAClaimTemplateAreNamed(t *testing.T) {
	w := withoutLog(t, 3)
	assert.Equal(t, []string{"create 2"}, w.did(), "the others come")
	assert.Equal(t, []string{"ClaimTemplateRemoved web-0"}, w.waits())
	for _, c := range []string{v1beta1.StatefulSetFailedCreatePod, v1beta1.StatefulSetProgressing, conditions.Stalled} {
		message := condition(t, w, c).Message
		assert.Contains(t, message, "pods are not created: web-0. Their revision mounts volume log", c)
		assert.Contains(t, message, "PVC log-web-0 is missing", c)
	}
	require.Len(t, w.plan().Notices, 1)
	assert.Equal(t, EventCreateFailed, w.plan().Notices[0].Reason)
	w.set.Status = w.status()
	assert.Empty(t, w.plan().RefusedVerbs, "nothing was refused")
	w.claim("log-web-0")
	assert.Equal(t, corev1.ConditionFalse, condition(t, w, v1beta1.StatefulSetFailedCreatePod).Status)
}

// A claim template comes and goes in the middle of everything, and pods that are lost come back with what they mount:
// the server refuses a pod that mounts a volume which nothing declares.
func TestClaimTemplatesComeAndGo(t *testing.T) {
	t.Parallel()
	walk := worlds(both(claimed("data", "log"), mounting("data", "log")), possible)
	start := walk.Start
	walk.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := start(t, seed)
		rng := rand.New(rand.NewPCG(seed, 11))
		for range 1 + rng.IntN(4) {
			change := []setOption{unclaimed, reclaimed}[rng.IntN(2)]
			w.EditAfter(time.Duration(rng.IntN(240))*time.Second, func() { edit(w, change, possible) })
		}
		w.EditAfter(5*time.Minute, func() { edit(w, reclaimed, possible) })
		return w, p
	}
	walk.Faults = func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign, f.Actors = 60, 0.15, []simulate.Actor{simulate.EvictsPods, simulate.DeletesPods}
		return f
	}
	walk.Run(t)
}

// reclaimed brings claim template log back.
func reclaimed(s *v1beta1.StatefulSet) {
	claimed("log")(s)
	mounting("data", "log")(s)
}

func TestALostPodBelowThePartitionComesBackWithItsClaims(t *testing.T) {
	for _, way := range []setOption{inOrder(), maxUnavailable("1")} {
		w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data", "log"), mounting("data", "log"), way)
		simulate.Settle(t, w, p, 500)
		uid := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "log-web-0").UID
		edit(w, unclaimed, partition(2))
		simulate.Settle(t, w, p, 500)
		require.NoError(t, w.Delete(cluster.NodeActor, podOf(w, 0)))
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, []string{"data", "log"}, []string{podOf(w, 0).Spec.Volumes[0].Name, podOf(w, 0).Spec.Volumes[1].Name})
		assert.Equal(t, uid, cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "log-web-0").UID)
		assert.Len(t, podOf(w, 2).Spec.Volumes, 1)
	}
}
