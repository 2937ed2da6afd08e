package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// pendingSince lets a claim of 1Gi await 2Gi in its file system for so long.
func pendingSince(ago time.Duration) gen.ClaimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		sized("2Gi", "1Gi", corev1.PersistentVolumeClaimFileSystemResizePending)(c)
		c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago))
	}
}

// A kubelet grows a mounted file system within 90 s: only after three minutes a size alone replaces a pod.
func TestTheKubeletHasTimeToGrowAFileSystem(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w := resizing(t, 1, policy(way)).claim("data-web-0", pendingSince(time.Minute)).updated(at(0))
		assert.Empty(t, w.claimActions())
		assert.Equal(t, []string{}, w.did())
		assert.Equal(t, []string{"VolumeResizing data-web-0"}, w.waits())
		assert.Contains(t, w.plan().String(), "PVC data-web-0: pod web-0 is recreated at 2026-01-02T12:02:00Z unless the kubelet expands the file system before")
		assert.LessOrEqual(t, w.plan().RequeueAfter, 2*time.Minute)
		w = resizing(t, 1, policy(way)).claim("data-web-0", pendingSince(3*time.Minute)).updated(at(0))
		assert.Len(t, w.claimActions(), 1, "the claim says for which pod")
		w = resizing(t, 2, policy(way)).claim("data-web-0", sized("1Gi", "1Gi")).claim("data-web-1", pendingSince(time.Minute)).updated(span(0, 1))
		assert.Empty(t, w.claimActions(), "the next one waits for it")
	}
	w := resizing(t, 1).claim("data-web-0", pendingSince(time.Minute)).old(at(0))
	assert.Len(t, w.claimActions(), 1, "the pod is replaced anyway")
	w = resizing(t, 1, policy(v1beta1.InPlaceIfPossible)).claim("data-web-0", pendingSince(time.Minute)).old(at(0))
	assert.Equal(t, []string{}, append(w.did(), w.claimActions()...), "a pod that changes in place waits for its kubelet")
	w = resizing(t, 1).claim("data-web-0", pendingSince(time.Minute)).updated(at(0), marked())
	assert.Equal(t, []string{"delete 0"}, w.did(), "its successor mounts the claim")
}

// tooLarge is a claim that was to grow to 100Gi and has failed to.
func tooLarge(c *corev1.PersistentVolumeClaim) {
	sized("100Gi", "1Gi", corev1.PersistentVolumeClaimControllerResizeError)(c)
	c.Status.Conditions[0].Message = "limit of 16Ti, quota exceeded"
}

// A volume that cannot grow keeps its pod in service and holds up neither that one's image nor others.
func TestFailedGrowthHoldsUpNothing(t *testing.T) {
	infeasible := func(c *corev1.PersistentVolumeClaim) {
		sized("100Gi", "1Gi")(c)
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInfeasible}
	}
	for name, claim := range map[string]gen.ClaimOption{"limit of 16Ti, quota exceeded": tooLarge, "NodeResizeInfeasible": infeasible} {
		w := resizing(t, 2, growing("100Gi")).claim("data-web-0", sized("100Gi", "100Gi")).claim("data-web-1", claim)
		w.old(span(0, 1))
		assert.Equal(t, []string{"delete 1"}, w.did(), "the image")
		w.pods = nil
		w.old(at(0)).updated(at(1))
		assert.Equal(t, []string{"delete 0"}, w.did(), "another pod")
		for _, kind := range []string{v1beta1.StatefulSetVolumeResizeFailed, conditions.Stalled} {
			c := condition(t, w, kind)
			assert.Equal(t, WaitResizeFailed, c.Reason, kind)
			assert.Contains(t, c.Message, "the expansion of PVC data-web-1 to 100Gi failed: "+name, kind)
		}
	}
}

// A claim whose growth has failed may ask for less, as long as that is more than it has. Then nothing is tried that could
// fail.
func TestFailedGrowthMayBeLowered(t *testing.T) {
	lowered := func(size string) string {
		return `PatchSpec data-web-0 {"metadata":{"annotations":{"apps.kruise.io/owned-by-asts":"web"}},"spec":{"resources":{"requests":{"storage":"` + size + `"}}}}`
	}
	for size, want := range map[string][]string{"200Gi": {lowered("200Gi")}, "100Gi": {}, "5Gi": {lowered("5Gi")}, "1Gi": {}, "512Mi": {}} {
		w := resizing(t, 1, growing(size)).claim("data-web-0", tooLarge).updated(at(0))
		assert.Equal(t, want, w.claimActions(), size)
		if size == "1Gi" {
			assert.Empty(t, w.waits(), "the pod has what its template asks for")
		}
	}
	w := resizing(t, 1, growing("1Gi")).claim("data-web-0", sized("2Gi", "1Gi")).updated(at(0))
	assert.Empty(t, w.claimActions(), "one that still grows keeps its size")
}

// A server that does not let a claim grow, because of a quota, keeps no pod from a good image.
func TestRefusedGrowthHoldsUpNothing(t *testing.T) {
	refused := func(w *world, until time.Duration) Plan {
		s := w.snapshot()
		var a action.Action
		for x := range judges.Actions(Compute(s).Steps, stepClaims) {
			a = x
		}
		require.Equal(t, "data-web-1", a.Object.GetName())
		s.Refusals = action.Refusals{a.Purpose(): {
			Probing: true, Until: now.Add(until), Told: action.Told{Message: "exceeded quota: requests.storage"},
			Targets: map[string]action.Refusal{a.Target(): {Until: now.Add(until)}},
		}}
		todo := Compute(s)
		c := conditions.Get(Status(s, todo, action.Failures{}).Conditions, v1beta1.StatefulSetVolumeResizeFailed)
		require.NotNil(t, c)
		assert.Equal(t, "the expansion of PVC data-web-1 was refused: exceeded quota: requests.storage", c.Message)
		return todo
	}
	fits, small := sized("2Gi", "2Gi"), sized("1Gi", "1Gi")
	w := resizing(t, 2).claim("data-web-0", fits).claim("data-web-1", small).updated(at(0)).old(at(1), unready)
	assert.Contains(t, refused(w, 20*time.Second).String(), "Delete pod web-1", "a pod that crashes")
	assert.NotContains(t, refused(w, -time.Second).String(), "Delete pod web-1", "its turn: the claim first")
	w = resizing(t, 2).claim("data-web-0", fits).claim("data-web-1", small).old(span(0, 1))
	assert.Contains(t, refused(w, 20*time.Second).String(), "Delete pod web-1", "a pod that serves")
	for _, way := range []setOption{inOrder(), maxUnavailable("1")} {
		w = resizing(t, 2, way).claim("data-web-0", fits).claim("data-web-1", small).old(at(0)).updated(at(1))
		assert.Contains(t, refused(w, 20*time.Second).String(), "Delete pod web-0", "another pod")
	}
}

// An edit of sizes alone, with a driver that grows file systems while they are mounted, restarts nothing.
func TestSizesGrowOnlineWithoutARestart(t *testing.T) {
	for _, change := range [][]setOption{{inOrder()}, {maxUnavailable("2")}, {policy(v1beta1.InPlaceIfPossible)}} {
		w, p := play(t, cluster.Options{Seed: 1}, 3, append(change, claimed("data", "log"), growing("1Gi"))...)
		simulate.Settle(t, w, p, 500)
		before := identities(w)
		edit(w, growing("2Gi"))
		simulate.Settle(t, w, p, 1000)
		arrived(t, w)
		assert.Equal(t, before, identities(w))
		assert.Equal(t, int32(3), present(w).Status.VolumeClaims[0].CompatibleReadyReplicas)
	}
}

// A size that nothing has is taken back, and the rollout ends without anybody else.
func TestAnInfeasibleSizeIsTakenBack(t *testing.T) {
	for size, want := range map[string]string{"3Gi": "3Gi", "1Gi": "100Gi"} {
		w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data"), growing("1Gi"))
		simulate.Settle(t, w, p, 500)
		edit(w, growing("100Gi"), image("app:2"))
		simulate.Settle(t, w, p, 1000)
		for _, o := range activePods(w) {
			assert.Equal(t, "app:2", o.Spec.Containers[0].Image, "the image comes to all")
		}
		assert.Equal(t, v1beta1.ReasonBlockedByVolume, conditions.Get(present(w).Status.Conditions, v1beta1.StatefulSetProgressing).Reason)
		edit(w, growing(size))
		simulate.Settle(t, w, p, 1000)
		arrived(t, w)
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-0")
		assert.Equal(t, want, claim.Spec.Resources.Requests.Storage().String(), size)
	}
}

// A pod of the update revision has nothing to update but its claims. One of them is tried at a time, and the pods of the
// others stay as they are.
func TestPodsOfClaimsThatAreNotTriedStay(t *testing.T) {
	small := sized("1Gi", "1Gi")
	for name, pods := range map[string][]gen.PodOption{"that serve": nil, "that are down": {unready}} {
		w := resizing(t, 3, maxUnavailable("100%")).updated(span(0, 2), pods...)
		for _, claim := range []string{"data-web-0", "data-web-1", "data-web-2"} {
			w.claim(claim, small)
		}
		s := w.snapshot()
		first := Compute(s).Steps[0].Actions[0]
		require.Equal(t, "Resize", first.Reason)
		s.Refusals = action.Refusals{first.Purpose(): {
			Probing: true, Until: now.Add(-time.Second), Told: action.Told{Message: "no answer"},
			Targets: map[string]action.Refusal{first.Target(): {Until: now.Add(-time.Second)}},
		}}
		todo := Compute(s)
		assert.Equal(t, 1, todo.Count(action.PatchSpec), "pods %s: %s", name, todo.String())
		assert.Zero(t, todo.Count(action.Delete), "pods %s: %s", name, todo.String())
	}
}

func TestQuestionsAboutAPodChangeNothing(t *testing.T) {
	w := resizing(t, 3, maxUnavailable("100%")).updated(span(0, 2), unready)
	for _, claim := range []string{"data-web-0", "data-web-1", "data-web-2"} {
		w.claim(claim, sized("1Gi", "1Gi"))
	}
	s := w.snapshot()
	first := Compute(s).Steps[0].Actions[0]
	s.Refusals = action.Refusals{first.Purpose(): {Probing: true, Told: action.Told{Message: "no answer"}, Targets: map[string]action.Refusal{first.Target(): {}}}}
	p := newPass(s)
	before, held := p.plan.String(), len(p.resizes.Actions)
	for i := range p.pods {
		o := &p.pods[i]
		may := p.mayMove(o)
		assert.Equal(t, may, p.mayMove(o), "asked again")
		assert.Len(t, o.claims.toGrow, 1)
	}
	assert.Equal(t, before, p.plan.String())
	assert.Len(t, p.resizes.Actions, held)
}
