package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/gen"
	"github.com/flotilla-project/flotilla/core/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func ownedBy(refs ...metav1.OwnerReference) gen.ClaimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = refs }
}

func plainRef(apiVersion, kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: gen.UID(uid)}
}

func setRef() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "StatefulSet", Name: "web", UID: "set-uid"}
}

func going(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }

// claimActions are what the plan does to claims, as text.
func (w *world) claimActions() []string {
	did := []string{}
	for a := range simulate.Actions(w.plan().Steps, StepClaims) {
		text := string(a.Verb) + " " + a.Object.GetName()
		for _, patch := range a.Patches {
			body, err := json.Marshal(patch.Body)
			require.NoError(w.t, err)
			text += " " + string(body)
		}
		did = append(did, text)
	}
	return did
}

// The table of persistentVolumeClaimRetentionPolicy, in each state of the pod.
func TestClaimsAreOwnedAsTheRetentionPolicySays(t *testing.T) {
	const del, keep = appsv1.DeletePersistentVolumeClaimRetentionPolicyType, appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	rows := []struct {
		whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType
		live, condemned         string // owners by kind
	}{
		{keep, keep, "", ""},
		{del, keep, "StatefulSet", "StatefulSet"},
		{keep, del, "", "Pod"},
		{del, del, "StatefulSet", "Pod"},
		{"Nonsense", "", "", ""},
	}
	for _, r := range rows {
		for name, before := range map[string][]metav1.OwnerReference{
			"none": nil, "the set": {setRef()}, "another": {plainRef("v1", "ConfigMap", "c", "c")},
		} {
			t.Run(string(r.whenDeleted)+" "+string(r.whenScaled)+" from "+name, func(t *testing.T) {
				w, p := play(t, simulate.Options{Seed: 1}, 2, claimed("data"), retention(r.whenDeleted, r.whenScaled))
				w.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: gen.Namespace, UID: gen.UID("c")}})
				w.OnEvent(func(w *simulate.World, e simulate.Event) { // the first owners of claim 1
					if c, ok := e.Object.(*corev1.PersistentVolumeClaim); ok && e.Type == simulate.Added && c.Name == "data-web-1" {
						_ = simulate.Change(w, simulate.UserActor, "", c, func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = before })
					}
				})
				simulate.Settle(t, w, p, 500)
				kinds := func() string {
					text := ""
					claim := simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1")
					require.NotNil(t, claim)
					for _, ref := range claim.OwnerReferences {
						if ref.Kind != "ConfigMap" {
							text += ref.Kind
						}
					}
					return text
				}
				assert.Equal(t, r.live, kinds())
				var condemned string
				w.OnEvent(func(_ *simulate.World, e simulate.Event) {
					if o, ok := e.Object.(*corev1.Pod); ok && e.Actor == simulate.OperatorActor && o.DeletionTimestamp != nil {
						condemned = kinds()
					}
				})
				edit(w, replicas(1))
				simulate.Settle(t, w, p, 500)
				assert.Equal(t, r.condemned, condemned, "when the pod is deleted")
				claim := simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1")
				assert.Equal(t, r.whenScaled == del && name != "another", claim == nil, "the claim is gone")
			})
		}
	}
}

// A node that is lost takes no claim with it: a live pod never owns one.
func TestAPodThatIsLostKeepsItsClaim(t *testing.T) {
	w, p := play(t, simulate.Options{Seed: 1}, 2, claimed("data"), retention("Delete", "Delete"))
	simulate.Settle(t, w, p, 500)
	uid := simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1").UID
	require.NoError(t, w.Delete(simulate.NodeActor, podOf(w, 1)))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, uid, simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1").UID)
}

// 3 replicas without 0 and 2-5, whenScaled Delete: claims for 1, 6 and 7; after scaling to 1 for 1 only.
func TestClaimsOfReservedOrdinals(t *testing.T) {
	w, p := play(t, simulate.Options{Seed: 1}, 3, claimed("data"), retention("Retain", "Delete"), reserved(0, "2-5"))
	simulate.Settle(t, w, p, 500)
	names := func() []string {
		var names []string
		for _, c := range simulate.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
			names = append(names, c.Name)
		}
		return names
	}
	assert.ElementsMatch(t, []string{"data-web-1", "data-web-6", "data-web-7"}, names())
	edit(w, replicas(1))
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, []string{"data-web-1"}, names())
}

func TestForeignClaimsAreLeftAlone(t *testing.T) {
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "x", UID: "x", Controller: new(true)}
	for name, ref := range map[string]metav1.OwnerReference{
		"another controller": foreign, "a former pod": plainRef("v1", "Pod", "web-1", "former"), "a former set": plainRef("apps.kruise.io/v1beta1", "StatefulSet", "web", "former"),
	} {
		w := given(t, 1, claimed("data"), retention("Delete", "Delete")).claim("data-web-1", ownedBy(ref)).updated(at(0, 1))
		delete(w.claims, "data-web-0")
		assert.Empty(t, w.claimActions(), name)
		assert.Equal(t, []string{"delete 1"}, w.did(), name)
	}
	w := given(t, 1, claimed("data"), retention("Delete", "Retain")).claim("data-web-0", ownedBy(foreign))
	todo := w.plan()
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, "ConflictingController", todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, "Other x")
	assert.Equal(t, []string{"create 0"}, w.did())
}

// A pod that was condemned when it was deleted takes its claim with it, also when its ordinal runs again
// before it is gone: the next pod starts with a fresh claim.
func TestScaledDownAndUpAgainAPodStartsAfresh(t *testing.T) {
	w := given(t, 1, claimed("data"), retention("Delete", "Delete")).updated(at(0), terminating)
	w.claims["data-web-0"].OwnerReferences = []metav1.OwnerReference{podRef(w.pods[0])}
	assert.Empty(t, w.claimActions())
}

// References of older installations are right as they are: no write for the sake of their form.
func TestPlainReferencesAreEnough(t *testing.T) {
	w := given(t, 1, claimed("data"), retention("Delete", "Retain")).claim("data-web-0", ownedBy(setRef())).updated(at(0))
	assert.Empty(t, w.claimActions())
	w.gates.AutoDeletePVC = false
	w.set.Spec.PersistentVolumeClaimRetentionPolicy = nil
	assert.Empty(t, w.claimActions(), "without the gate nothing is touched")
}

// W20: an owner of another kind with the pod's name kept an ordinal empty.
func TestOnlyAFormerPodMakesAClaimStale(t *testing.T) {
	stale := func(ref metav1.OwnerReference) *world {
		return given(t, 1, claimed("data"), retention("Retain", "Delete")).claim("data-web-0", ownedBy(ref))
	}
	w := stale(plainRef("v1", "Pod", "web-0", "former"))
	assert.Equal(t, []string{}, w.did())
	assert.Equal(t, []string{"WaitingForStaleClaim data-web-0"}, w.waits())
	todo := w.plan()
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, "WaitingForStaleClaim", todo.Notices[0].Reason)
	assert.Equal(t, []string{"create 0"}, stale(plainRef("example.com/v1", "Pod", "web-0", "other")).did())
	assert.Equal(t, []string{"create 0"}, stale(plainRef("v1", "ConfigMap", "web-0", "other")).did())
	assert.Equal(t, []string{"create 0"}, stale(plainRef("v1", "Pod", "web-7", "other")).did())
}

// A claim that was to go with a former pod stays where the policy retains claims again: its owner is
// taken from it before there is a pod that uses it.
func TestARetainedClaimIsTakenFromAFormerPod(t *testing.T) {
	w := given(t, 1, claimed("data"), retention("Retain", "Retain")).claim("data-web-0", ownedBy(plainRef("v1", "Pod", "web-0", "former")))
	assert.Equal(t, []string{}, w.did())
	assert.Equal(t, []string{`PatchMetadata data-web-0 {"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(gen.UID("former")) + `"}]}}`}, w.claimActions())
	w.claims["data-web-0"].OwnerReferences = nil
	assert.Equal(t, []string{"create 0"}, w.did())
}

// 313: a claim on its way out holds up its own pod only.
func TestATerminatingClaimHoldsUpNoOtherPod(t *testing.T) {
	w := given(t, 3, claimed("data")).claim("data-web-0", going)
	assert.Equal(t, []string{"create 1", "create 2"}, w.did())
	assert.Equal(t, []string{"ClaimTerminating data-web-0"}, w.waits())
	todo := w.plan()
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, eventCreateFailed, todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, "pvc data-web-0 is to be deleted")
}

func TestClaimsOfPendingPodsAreMadeAgain(t *testing.T) {
	w := given(t, 2, claimed("data")).updated(at(0), gen.Phase(corev1.PodPending)).updated(at(1))
	delete(w.claims, "data-web-0")
	delete(w.claims, "data-web-1")
	assert.Equal(t, []string{"Create data-web-0"}, w.claimActions())
}

// W2, 2343: adding or renaming a claim template wedged the set with an update of pods that no server
// takes. Pods without the volume are recreated by the update, in its order.
func TestPodsWithoutAClaimTemplatesVolumeAreRecreated(t *testing.T) {
	check(t, []row{
		{"in update order", given(t, 3, claimed("data")).updated(span(0, 2), withoutVolumes), []string{"delete 2"}},
		{"also where the rest could change in place", given(t, 2, claimed("data"), policy(v1beta1.InPlaceIfPossible)).old(span(0, 1), withoutVolumes), []string{"delete 1"}},
		{"not below the partition", given(t, 2, claimed("data"), partition(2)).old(span(0, 1), withoutVolumes), []string{}},
		{"not with type OnDelete", given(t, 2, claimed("data"), onDeleteOnly()).updated(span(0, 1), withoutVolumes), []string{}},
		{"not with policy InPlaceOnly", given(t, 2, claimed("data"), policy(v1beta1.InPlaceOnly)).updated(span(0, 1), withoutVolumes), []string{}},
	})
	for _, way := range []setOption{inOrder(), maxUnavailable("2")} {
		w, p := play(t, simulate.Options{Seed: 1}, 3, claimed("data"), way)
		simulate.Settle(t, w, p, 500)
		edit(w, func(s *v1beta1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Name = "store" })
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, "store-web-2", podOf(w, 2).Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
		assert.NotNil(t, simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-2"), "the former claim stays")
	}
}

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
	w.gates.AutoResizePVC = false
	assert.Empty(t, w.claimActions(), "without the gate")
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
	assert.NotContains(t, w.plan().String(), "Regret")
}

// An edit of sizes alone, with a driver that grows file systems at the next mount, ends without a human.
func TestSizesGrowWithADriverThatResizesOffline(t *testing.T) {
	for _, change := range [][]setOption{{inOrder()}, {maxUnavailable("2")}, {policy(v1beta1.InPlaceIfPossible)}, {hooked(), hookTaken()}} {
		w, p := play(t, simulate.Options{Seed: 1}, 4, append(change, claimed("data", "log"), growing("1Gi"))...)
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
	w, p := play(t, simulate.Options{Seed: 1}, 3, claimed("data"), growing("1Gi"))
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

// What is out of service is fixed forward whatever becomes of its claims.
func TestClaimsHoldUpOnlyPodsThatServe(t *testing.T) {
	for name, claim := range map[string]gen.ClaimOption{
		"grows":       sized("2Gi", "1Gi"),
		"cannot grow": func(c *corev1.PersistentVolumeClaim) { sized("1Gi", "1Gi")(c); c.Spec.StorageClassName = new("fixed") },
	} {
		w := resizing(t, 1).claim("data-web-0", claim).old(at(0))
		assert.Equal(t, []string{}, w.did(), name)
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
	assert.Contains(t, w.plan().String(), "claim data-web-1 cannot grow yet: forbidden")
	assert.LessOrEqual(t, w.plan().WakeAfter, 10*time.Second, "it is tried again")
	w = unreadable(resizing(t, 2).claim("data-web-0", fits).claim("data-web-1", fits).old(span(0, 1)))
	assert.Equal(t, []string{"delete 1"}, w.did(), "no claim is to grow")
	w = unreadable(resizing(t, 1).claim("data-web-0", small).old(at(0), unready))
	assert.Equal(t, []string{"delete 0"}, w.did(), "fixed forward")
}

// W18, W19: a claim that cannot follow holds up its own pod, and the user is told which and why.
func TestClaimsThatCannotGrowHoldUpNoOtherPod(t *testing.T) {
	class := func(name string) gen.ClaimOption {
		return func(c *corev1.PersistentVolumeClaim) { sized("1Gi", "1Gi")(c); c.Spec.StorageClassName = &name }
	}
	for name, row := range map[string]struct {
		template, claim, event, text string
	}{
		"not expandable": {"fixed", "fixed", "FailedResize", "storage class fixed does not support volume expansion"},
		"no such class":  {"none", "none", "FailedResize", "storage class none does not exist"},
		"another class":  {"big", "fixed", "FailedUpdatePVC", "delete it to have it made anew"},
	} {
		t.Run(name, func(t *testing.T) {
			w := resizing(t, 2, func(s *v1beta1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &row.template })
			w.claim("data-web-1", class(row.claim)).claim("data-web-0", class(row.template))
			w.claims["data-web-0"].Spec.Resources.Requests = w.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests
			w.claims["data-web-0"].Status.Capacity = w.claims["data-web-0"].Spec.Resources.Requests
			w.old(span(0, 1))
			assert.Equal(t, []string{"delete 0"}, w.did())
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
	w.gates.AutoResizePVC = false
	assert.Equal(t, []v1beta1.VolumeClaimStatus{
		{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 1}, {VolumeClaimName: "log"},
	}, w.status().VolumeClaims)
}

// 4 replicas, partition 2: two claims grow, and a specified pod below the partition keeps its small one.
func TestSpecifiedPodsBelowThePartitionKeepSmallClaims(t *testing.T) {
	w, p := play(t, simulate.Options{Seed: 1}, 4, claimed("data"), growing("1Gi"), partition(2), maxUnavailable("2"))
	simulate.Settle(t, w, p, 500)
	edit(w, growing("2Gi"), image("app:2"))
	require.NoError(t, simulate.Change(w, simulate.UserActor, "", podOf(w, 0), func(o *corev1.Pod) { marked()(o) }))
	simulate.Settle(t, w, p, 500)
	for ordinal, want := range []string{"1Gi", "1Gi", "2Gi", "2Gi"} {
		claim := simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-"+podName("web", int32(ordinal)))
		assert.Equal(t, want, claim.Spec.Resources.Requests.Storage().String(), "%d", ordinal)
	}
	assert.Equal(t, []v1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 2}}, present(w).Status.VolumeClaims)
}
