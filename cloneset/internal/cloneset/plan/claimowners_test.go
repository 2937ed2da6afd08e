package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// An instance of which one claim goes is not reused: the new pod would mount a claim that is deleted under it.
func TestAnInstanceIsReusedWithAllItsClaims(t *testing.T) {
	gone := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web-aaaaa", UID: "gone"}}
	for name, c := range map[string]struct {
		change func(data *corev1.PersistentVolumeClaim)
		reused bool
	}{
		"both are the set's":               {func(*corev1.PersistentVolumeClaim) {}, true},
		"one goes with its pod":            {func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = gone }, false},
		"one is being deleted":             {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }, false},
		"one is somebody else's":           {func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].UID = "other" }, false},
		"one is absent, and is made again": {func(c *corev1.PersistentVolumeClaim) { c.Name = "data-web-other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 1, claimed("data", "log"), reusing).claim("data", "aaaaa").claim("log", "aaaaa")
			c.change(w.claims[0])
			creates := created(t, w.plan())
			require.Len(t, creates, 1)
			assert.Equal(t, c.reused, creates[0].Object.GetName() == "web-aaaaa", text(w.plan()))
		})
	}
	w := given(t, 1, claimed("data", "log"), reusing).claim("data", "aaaaa").claim("log", "aaaaa")
	w.claims[0].OwnerReferences = gone
	w.pods = append(w.pods, gen.Pod("web-aaaaa", gen.Terminating(), gen.OwnedBy(w.set), gen.Label(contract.InstanceIDLabel, "aaaaa")))
	assert.Len(t, created(t, w.plan()), 1, "nobody waits for its pod to go")
}

// The name of a pod that is to be deleted goes to no new pod, which would be deleted for it with its claims.
func TestANamedPodsInstanceIsNotReused(t *testing.T) {
	for name, reused := range map[string]bool{"web-aaaaa": false, "web-other": true} {
		w := given(t, 1, claimed("data"), reusing, named(name)).claim("data", "aaaaa")
		creates := created(t, w.plan())
		require.Len(t, creates, 1)
		assert.Equal(t, reused, creates[0].Object.GetName() == "web-aaaaa", "podsToDelete has %s", name)
	}
}

// Claims that were left behind together with their pod come to the set with it.
func TestClaimsOfAdoptedPodsAreAdopted(t *testing.T) {
	given := func(replicas int32, options ...setOption) *world {
		w := given(t, replicas, append(options, claimed("data", "log"))...).updated(1).claim("data", "new0").claim("log", "new0")
		newpod.MountClaims(w.pods[0], newpod.Mount{Volume: "data", Claim: "data-web-new0"}, newpod.Mount{Volume: "log", Claim: "log-web-new0"})
		for _, c := range w.claims {
			c.OwnerReferences = nil
		}
		return w
	}
	assert.Equal(t, "claims:\n"+
		"  Adopt claim data-web-new0 (PodStays): pod web-new0 stays\n"+
		"  Adopt claim log-web-new0 (PodStays): pod web-new0 stays\n", text(given(1).plan()))
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"has another instance id": func(c *corev1.PersistentVolumeClaim) { c.Labels[contract.InstanceIDLabel] = "other" },
		"has an owner":            func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} },
		"is being deleted":        func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} },
	} {
		w := given(1)
		change(w.claims[0])
		assert.NotContains(t, text(w.plan()), "data-web-new0", name)
	}
	w := given(0)
	todo := w.plan()
	require.Len(t, todo.Steps, 1, text(todo))
	assert.Len(t, todo.Steps[0].Actions[0].Dependents, 2, "a pod that goes at once takes them along")
	assert.Equal(t, 2, strings.Count(text(given(0, reusing).plan()), "Release claim"), "where claims are reused, too")
}

// The name of a pod is cut where the set's is long, and those of its claims are not.
func TestClaimsOfLongNamesComeBack(t *testing.T) {
	for _, length := range []int{57, 58, 60, 100} {
		name := strings.Repeat("w", length)
		w := given(t, 1, claimed("data"), reusing, func(s *v1beta1.CloneSet) { s.Name = name }).updated(1).claim("data", "new0")
		w.pods[0].Name = newpod.NamePrefix(name) + "new0"
		w.claims[0].Name = "data-" + name + "-new0"
		w.claims[0].OwnerReferences = []metav1.OwnerReference{ownership.PodReference(w.pods[0])}
		newpod.MountClaims(w.pods[0], newpod.Mount{Volume: "data", Claim: w.claims[0].Name})
		assert.Contains(t, text(w.plan()), "Adopt claim "+w.claims[0].Name, length)
	}
}

// Left without their set, pods come to its successor with their claims, and the next scale-in takes those along.
func TestClaimsFollowPodsToAnotherSet(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 5}, 3, claimed("data", "log"))
	simulate.Settle(t, w, p, 500)
	require.NoError(t, w.Leave(cluster.UserActor, present(w)))
	w.Add(newSet(3, claimed("data", "log")))
	simulate.Settle(t, w, p, 500)
	edit(w, replicas(1))
	simulate.Settle(t, w, p, 500)
	assert.Len(t, cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)), 2)
}
