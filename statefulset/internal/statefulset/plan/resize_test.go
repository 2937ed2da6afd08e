package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// sized gives the claims of the world's templates a size, whatever the templates say.
func sized(request, capacity string, conditions ...corev1.PersistentVolumeClaimConditionType) gen.ClaimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = new("big")
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		for _, t := range conditions {
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: t, Status: corev1.ConditionTrue})
		}
	}
}

func resizing(t *testing.T, n int32, change ...setOption) *world {
	t.Helper()
	w := given(t, n, append([]setOption{claimed("data"), growing("2Gi")}, change...)...)
	w.expandable = map[string]bool{"big": true, "fixed": false}
	return w
}

func TestClaimsGrowInUpdateOrder(t *testing.T) {
	const grown = `{"metadata":{"annotations":{"apps.kruise.io/owned-by-asts":"web"}},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`
	small, fits := sized("1Gi", "1Gi"), sized("2Gi", "2Gi")
	w := resizing(t, 2).claim("data-web-0", small).claim("data-web-1", small).old(span(0, 1))
	assert.Equal(t, []string{"PatchSpec data-web-1 " + grown}, w.claimActions())
	assert.Equal(t, []string{}, w.did(), "the pod waits for its claim")

	w = resizing(t, 2, func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	}).claim("data-web-0", small).claim("data-web-1", small).old(span(0, 1))
	assert.Equal(t, []string{"PatchSpec data-web-1 " + grown}, w.claimActions(), "limits of a bound claim cannot change")

	w = resizing(t, 2).claim("data-web-0", small).claim("data-web-1", sized("2Gi", "1Gi")).old(span(0, 1))
	assert.Empty(t, w.claimActions(), "a pod whose claim grows is out of service")
	assert.Equal(t, []string{}, w.did())
	assert.Contains(t, w.waits(), "VolumeResizing data-web-1")

	w = resizing(t, 2).claim("data-web-0", small).claim("data-web-1", fits).old(span(0, 1))
	assert.Equal(t, []string{"delete 1"}, w.did(), "the claim is done")

	w = resizing(t, 2).claim("data-web-0", fits).claim("data-web-1", small).updated(span(0, 1))
	assert.Equal(t, []string{"PatchSpec data-web-1 " + grown}, w.claimActions(), "only the size changed")

	w = resizing(t, 2, partition(2)).claim("data-web-0", small).claim("data-web-1", small).old(span(0, 1))
	assert.Empty(t, w.claimActions(), "below the partition")
	w = resizing(t, 2, paused(true)).claim("data-web-0", small).claim("data-web-1", small).old(span(0, 1))
	assert.Empty(t, w.claimActions(), "paused")
	w = resizing(t, 2).claim("data-web-0", small).claim("data-web-1", small).old(span(0, 1))
	w.featureGates.AutoResizePVC = false
	assert.Empty(t, w.claimActions(), "without the feature gate")
	w = resizing(t, 1, growing("1Gi")).claim("data-web-0", fits).updated(at(0))
	assert.Empty(t, w.claimActions(), "a claim that is larger stays")
}

// The volume has grown and its file system grows with the next mount: a new pod mounts it.
func TestPodsAreReplacedForTheNextMount(t *testing.T) {
	awaits := sized("2Gi", "1Gi", corev1.PersistentVolumeClaimFileSystemResizePending)
	replaces := func(ordinal int32, size string) gen.ClaimOption {
		return func(c *corev1.PersistentVolumeClaim) {
			awaits(c)
			c.Annotations = map[string]string{v1beta1.RemountAnnotation: string(gen.UID(podName("web", ordinal))) + "/" + size}
		}
	}
	mark := func(ordinal int32) string {
		name := podName("web", ordinal)
		return `PatchMetadata data-` + name + ` {"metadata":{"annotations":{"apps.kruise.io/remount-for":"` + string(gen.UID(name)) + `/2Gi"}}}`
	}
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w := resizing(t, 1, policy(way)).claim("data-web-0", awaits).updated(at(0))
		assert.Equal(t, []string{mark(0)}, w.claimActions(), "the claim says first for which pod")
		assert.Equal(t, []string{}, w.did())
		w = resizing(t, 1, policy(way)).claim("data-web-0", replaces(0, "2Gi")).updated(at(0))
		assert.Empty(t, w.claimActions())
		assert.Equal(t, []string{"delete 0"}, w.did(), "only the size changed")
		w = resizing(t, 1, policy(way)).claim("data-web-0", replaces(0, "2Gi")).old(at(0))
		assert.Equal(t, []string{"delete 0"}, w.did(), "never in place first, and then by a new pod")
		w = resizing(t, 1, policy(way)).claim("data-web-0", replaces(7, "2Gi")).updated(at(0))
		assert.Equal(t, []string{}, append(w.did(), w.claimActions()...), "the new pod stays, even if the claim goes on awaiting a mount")
		assert.Equal(t, []string{"VolumeResizing data-web-0"}, w.waits())
		w = resizing(t, 1, policy(way)).claim("data-web-0", replaces(7, "1Gi")).updated(at(0))
		assert.Equal(t, []string{mark(0)}, w.claimActions(), "it has grown again")
		w = resizing(t, 1, policy(way)).claim("data-web-0", awaits).updated(at(0), gen.Phase(corev1.PodPending))
		assert.Equal(t, []string{}, append(w.did(), w.claimActions()...), "a pod that has not started will mount it")
	}
	w := resizing(t, 1, policy(v1beta1.InPlaceOnly)).claim("data-web-0", awaits).updated(at(0))
	assert.Equal(t, []string{}, append(w.did(), w.claimActions()...), "nobody may replace it")
	assert.Equal(t, []string{"VolumeResizing data-web-0"}, w.waits())

	w = resizing(t, 3, maxUnavailable("2"))
	for ordinal := range int32(3) {
		w.claim("data-"+podName("web", ordinal), replaces(ordinal, "2Gi"))
	}
	w.updated(span(0, 2))
	assert.Equal(t, []string{"delete 2", "delete 1"}, w.did(), "pods that serve go as far as maxUnavailable lets them")
	w.pods[0].DeletionTimestamp = &metav1.Time{Time: now}
	assert.Equal(t, []string{"delete 2"}, w.did())
	w = resizing(t, 3, partition(1)).claim("data-web-0", awaits).claim("data-web-1", sized("2Gi", "2Gi")).claim("data-web-2", sized("2Gi", "2Gi")).old(span(0, 2))
	assert.Equal(t, []string{"delete 2"}, w.did(), "one that is left alone holds up nobody")
	w = resizing(t, 3, partition(2)).claim("data-web-1", replaces(1, "2Gi")).updated(span(0, 2))
	assert.Equal(t, []string{}, w.did(), "below the partition")
	w = resizing(t, 1, hooked()).claim("data-web-0", replaces(0, "2Gi")).updated(at(0), heldBefore(contract.LifecyclePreparingDelete))
	assert.Equal(t, []string{}, w.did())
	assert.NotContains(t, w.plan().String(), EventDeleteCancelled)
}

// An edit of sizes alone, with a driver that grows file systems at the next mount, ends without a human.
func TestSizesGrowWithADriverThatResizesOffline(t *testing.T) {
	for _, change := range [][]setOption{{inOrder()}, {maxUnavailable("2")}, {policy(v1beta1.InPlaceIfPossible)}, {hooked(), hookTaken()}} {
		w, p := play(t, cluster.Options{Seed: 1}, 4, append(change, claimed("data", "log"), growing("1Gi"))...)
		p.offline = true
		answers(w, 3*time.Second)
		simulate.Settle(t, w, p, 500)
		before := identities(w)
		edit(w, growing("2Gi"))
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, int32(4), present(w).Status.VolumeClaims[0].CompatibleReadyReplicas)
		for name, uid := range identities(w) {
			assert.NotEqual(t, before[name], uid, name)
		}
	}
}

// A driver whose file systems never grow has each pod replaced once, and not again and again.
func TestADriverThatNeverGrowsHasPodsReplacedOnce(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data"), growing("1Gi"))
	p.offline, p.never = true, true
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	edit(w, growing("2Gi"))
	simulate.Settle(t, w, p, 500)
	for name, uid := range identities(w) {
		assert.NotEqual(t, before[name], uid, name)
	}
	assert.Equal(t, at(0, 1, 2), running(w))
	assert.Contains(t, w.Story(), "Remount")
	assert.Equal(t, 3, strings.Count(w.Story(), "(Recreate)"), w.Story())
}

// A claim without a volume cannot grow and has nothing to wait for: the pod that waits for the volume
// is updated and deleted as any other.
func TestClaimsWithoutAVolumeHoldUpNoPod(t *testing.T) {
	unbound := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = new("big")
		c.Status.Phase = corev1.ClaimPending
	}
	unschedulable := gen.Phase(corev1.PodPending)
	w := resizing(t, 2).claim("data-web-0", sized("2Gi", "2Gi")).claim("data-web-1", unbound).updated(at(0)).old(at(1), unschedulable, unready)
	assert.Equal(t, []string{"delete 1"}, w.did(), "fixed forward")
	assert.Empty(t, w.claimActions(), "no server lets it grow")
	assert.NotContains(t, w.waits(), "VolumeResizing data-web-1")
	w = resizing(t, 2).claim("data-web-0", sized("2Gi", "2Gi")).claim("data-web-1", unbound).updated(at(0)).updated(at(1), unschedulable, unready, marked())
	assert.Equal(t, []string{"delete 1"}, w.did(), "specified for deletion")
	assert.Empty(t, w.claimActions())
}

// What is out of service is fixed forward whatever becomes of its claims. What serves waits for those that grow only.
func TestClaimsHoldUpOnlyPodsThatServe(t *testing.T) {
	for name, claim := range map[string]gen.ClaimOption{
		"grows":       sized("2Gi", "1Gi"),
		"cannot grow": func(c *corev1.PersistentVolumeClaim) { sized("1Gi", "1Gi")(c); c.Spec.StorageClassName = new("fixed") },
	} {
		w := resizing(t, 1).claim("data-web-0", claim).old(at(0))
		assert.Equal(t, name == "grows", len(w.did()) == 0, name)
		w = resizing(t, 1).claim("data-web-0", claim).old(at(0), unready)
		assert.Equal(t, []string{"delete 0"}, w.did(), name)
		w = resizing(t, 1).claim("data-web-0", claim).updated(at(0), unready)
		assert.Equal(t, []string{}, w.did(), name)
	}
}

// Nobody may list storage classes: only the growth of claims waits.
func TestUnreadableClassesHoldUpGrowthOnly(t *testing.T) {
	small, fits := sized("1Gi", "1Gi"), sized("2Gi", "2Gi")
	unreadable := func(w *world) *world {
		w.expandable, w.classesErr = nil, errors.New("forbidden")
		return w
	}
	w := unreadable(resizing(t, 3).claim("data-web-0", small).claim("data-web-1", small).updated(at(0, 1, 7)))
	assert.Equal(t, []string{"create 2", "delete 7"}, w.did())
	assert.Empty(t, w.claimActions(), "nothing grows")
	assert.Contains(t, w.waits(), "VolumeResizing data-web-1")
	assert.Contains(t, w.plan().String(), "PVC data-web-1 waits for its expansion: forbidden")
	assert.LessOrEqual(t, w.plan().RequeueAfter, 10*time.Second, "it is tried again")
	w = unreadable(resizing(t, 2).claim("data-web-0", fits).claim("data-web-1", fits).old(span(0, 1)))
	assert.Equal(t, []string{"delete 1"}, w.did(), "no claim is to grow")
	w = unreadable(resizing(t, 1).claim("data-web-0", small).old(at(0), unready))
	assert.Equal(t, []string{"delete 0"}, w.did(), "fixed forward")
}

// A claim that cannot follow holds up no pod, and the user is told which and why.
func TestClaimsThatCannotGrowHoldUpNoPod(t *testing.T) {
	class := func(name string) gen.ClaimOption {
		return func(c *corev1.PersistentVolumeClaim) { sized("1Gi", "1Gi")(c); c.Spec.StorageClassName = &name }
	}
	for name, row := range map[string]struct {
		template, claim, event, text string
	}{
		"not expandable": {"fixed", "fixed", "FailedResize", "StorageClass fixed does not support volume expansion"},
		"no such class":  {"none", "none", "FailedResize", "StorageClass none does not exist"},
		"another class":  {"big", "fixed", "FailedUpdatePVC", "to have it recreated, save its data and delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := resizing(t, 2, func(s *v1beta1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &row.template })
			w.claim("data-web-1", class(row.claim)).claim("data-web-0", class(row.template))
			w.claims["data-web-0"].Spec.Resources.Requests = w.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests
			w.claims["data-web-0"].Status.Capacity = w.claims["data-web-0"].Spec.Resources.Requests
			w.old(span(0, 1))
			assert.Equal(t, []string{"delete 1"}, w.did())
			assert.Contains(t, w.waits(), "VolumeResizeFailed data-web-1")
			todo := w.plan()
			require.Len(t, todo.Notices, 1)
			assert.Equal(t, row.event, todo.Notices[0].Reason)
			assert.Contains(t, todo.Notices[0].Note, row.text)
			c := condition(t, w, v1beta1.StatefulSetVolumeResizeFailed)
			assert.Equal(t, corev1.ConditionTrue, c.Status)
			assert.Contains(t, c.Message, "data-web-1")
			w.set.Status = w.status()
			w.claims["data-web-1"].Spec = *w.set.Spec.VolumeClaimTemplates[0].Spec.DeepCopy()
			w.claims["data-web-1"].Status.Capacity = w.claims["data-web-0"].Status.Capacity
			assert.Equal(t, corev1.ConditionFalse, condition(t, w, v1beta1.StatefulSetVolumeResizeFailed).Status, "it stays, as False")
		})
	}
}

// A claim without a class takes any, and one that is missing or going is no obstacle.
func TestClaimsThatAreNotCompared(t *testing.T) {
	w := resizing(t, 1).claim("data-web-0", sized("2Gi", "2Gi"), func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }).old(at(0))
	assert.Equal(t, []string{"delete 0"}, w.did())
	w = resizing(t, 1).claim("data-web-0", sized("1Gi", "1Gi"), going).old(at(0))
	assert.Equal(t, []string{"delete 0"}, w.did())
	w = resizing(t, 1).old(at(0))
	delete(w.claims, "data-web-0")
	assert.Equal(t, []string{"delete 0"}, w.did())
}

// 3 replicas, partition 2: one claim of 2Gi. After the image and the type have gone back, one follows.
func TestStatusOfVolumeClaims(t *testing.T) {
	small, fits := sized("1Gi", "1Gi"), sized("2Gi", "2Gi")
	w := resizing(t, 4).claim("data-web-0", small).claim("data-web-1", small).claim("data-web-2", fits).claim("data-web-3", sized("3Gi", "2Gi")).updated(span(0, 3))
	w.set.Spec.VolumeClaimTemplates = append(w.set.Spec.VolumeClaimTemplates, gen.Claim("log", "1Gi"))
	w.featureGates.AutoResizePVC = false
	assert.Equal(t, []v1beta1.VolumeClaimStatus{
		{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 1}, {VolumeClaimName: "log"},
	}, w.status().VolumeClaims)
}

// 4 replicas, partition 2: two claims grow, and a specified pod below the partition keeps its small one.
func TestSpecifiedPodsBelowThePartitionKeepSmallClaims(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 4, claimed("data"), growing("1Gi"), partition(2), maxUnavailable("2"))
	simulate.Settle(t, w, p, 500)
	edit(w, growing("2Gi"), image("app:2"))
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", podOf(w, 0), func(o *corev1.Pod) { marked()(o) }))
	simulate.Settle(t, w, p, 500)
	for ordinal, want := range []string{"1Gi", "1Gi", "2Gi", "2Gi"} {
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-"+podName("web", int32(ordinal)))
		assert.Equal(t, want, claim.Spec.Resources.Requests.Storage().String(), "%d", ordinal)
	}
	assert.Equal(t, []v1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 2}}, present(w).Status.VolumeClaims)
}
