package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

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
	for a := range judges.Actions(w.plan().Steps, stepClaims) {
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
				w, p := play(t, cluster.Options{Seed: 1}, 2, claimed("data"), retention(r.whenDeleted, r.whenScaled))
				w.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: gen.Namespace, UID: gen.UID("c")}})
				w.OnEvent(func(w *simulate.World, e cluster.Event) { // the first owners of claim 1
					if c, ok := e.Object.(*corev1.PersistentVolumeClaim); ok && e.Type == cluster.Added && c.Name == "data-web-1" {
						_ = cluster.Change(w, cluster.UserActor, "", c, func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = before })
					}
				})
				simulate.Settle(t, w, p, 500)
				kinds := func() string {
					text := ""
					claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1")
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
				w.OnEvent(func(_ *simulate.World, e cluster.Event) {
					if o, ok := e.Object.(*corev1.Pod); ok && e.Actor == cluster.OperatorActor && o.DeletionTimestamp != nil {
						condemned = kinds()
					}
				})
				edit(w, replicas(1))
				simulate.Settle(t, w, p, 500)
				assert.Equal(t, r.condemned, condemned, "when the pod is deleted")
				claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1")
				assert.Equal(t, r.whenScaled == del && name != "another", claim == nil, "the claim is gone")
			})
		}
	}
}

// A node that is lost takes no claim with it: a live pod never owns one.
func TestAPodThatIsLostKeepsItsClaim(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 2, claimed("data"), retention("Delete", "Delete"))
	simulate.Settle(t, w, p, 500)
	uid := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1").UID
	require.NoError(t, w.Delete(cluster.NodeActor, podOf(w, 1)))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, uid, cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-1").UID)
}

// While the server refuses to write the claims that a pod waits for, or the revision, which is written before them, no
// pass looks in vain each second.
func TestClaimsThatPodsWaitForAreLookedAtWhenTheyMayBeTried(t *testing.T) {
	for name, w := range map[string]*world{
		"of a pod that is to go":    given(t, 0, claimed("data"), retention("Retain", "Delete")).updated(at(0)),
		"of a pod that is to come":  given(t, 1, claimed("data")).claim("data-web-0", ownedBy(plainRef("v1", "Pod", "web-0", "former"))),
		"of a pod that is replaced": resizing(t, 1).claim("data-web-0", sized("2Gi", "1Gi", corev1.PersistentVolumeClaimFileSystemResizePending)).updated(at(0)),
	} {
		w.unsaved = true
		s := w.snapshot()
		todo := Compute(s)
		require.Equal(t, []string{stepRevision, stepClaims}, []string{todo.Steps[0].Name, todo.Steps[1].Name}, name)
		assert.Equal(t, writtenCheck, todo.RequeueAfter, name)
		for _, step := range todo.Steps {
			a := step.Actions[0]
			s.Refusals = action.Refusals{a.Purpose(): {
				Told: action.Told{Message: "no"}, Targets: map[string]action.Refusal{a.Target(): {Until: now.Add(20 * time.Second)}},
			}}
			assert.Equal(t, 20*time.Second, Compute(s).RequeueAfter, "claims %s, %s refused", name, step.Name)
		}
	}
}

// 3 replicas without 0 and 2-5, whenScaled Delete: claims for 1, 6 and 7; after scaling to 1 for 1 only.
func TestClaimsOfReservedOrdinals(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data"), retention("Retain", "Delete"), reserved(0, "2-5"))
	simulate.Settle(t, w, p, 500)
	names := func() []string {
		var names []string
		for _, c := range cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
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
	w.featureGates.AutoDeletePVC = false
	w.set.Spec.PersistentVolumeClaimRetentionPolicy = nil
	assert.Empty(t, w.claimActions(), "without the feature gate nothing is touched")
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

// A second write in the pass would meet the version of the first one, and conflict.
func TestARetainedClaimIsWrittenOnceInAPass(t *testing.T) {
	former := plainRef("v1", "Pod", "web-0", "former")
	w := given(t, 1, claimed("data"), retention("Retain", "Retain")).claim("data-web-0", ownedBy(former, setRef()))
	assert.Equal(t, []string{`PatchMetadata data-web-0 {"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(former.UID) + `"}]}}`}, w.claimActions())
	w.claims["data-web-0"].OwnerReferences = []metav1.OwnerReference{setRef()}
	assert.Equal(t, []string{`PatchMetadata data-web-0 {"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set-uid"}]}}`}, w.claimActions(), "the rest follows")
}

// 313: a claim on its way out holds up its own pod only.
func TestATerminatingClaimHoldsUpNoOtherPod(t *testing.T) {
	w := given(t, 3, claimed("data")).claim("data-web-0", going)
	assert.Equal(t, []string{"create 1", "create 2"}, w.did())
	assert.Equal(t, []string{"ClaimTerminating data-web-0"}, w.waits())
	todo := w.plan()
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, EventCreateFailed, todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, "pvc data-web-0 is to be deleted")
}

func TestClaimsOfPendingPodsAreMadeAgain(t *testing.T) {
	w := given(t, 2, claimed("data")).updated(at(0), gen.Phase(corev1.PodPending)).updated(at(1))
	delete(w.claims, "data-web-0")
	delete(w.claims, "data-web-1")
	assert.Equal(t, []string{"Create data-web-0"}, w.claimActions())

	w = given(t, 1, claimed("data")).updated(at(0)).updated(at(1), unready, gen.Phase(corev1.PodPending))
	delete(w.claims, "data-web-1")
	assert.Equal(t, []string{"delete 1"}, w.did())
	assert.Empty(t, w.claimActions(), "of a pod that goes")
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
		w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data"), way)
		simulate.Settle(t, w, p, 500)
		edit(w, func(s *v1beta1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Name = "store" })
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, "store-web-2", podOf(w, 2).Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
		assert.NotNil(t, cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-web-2"), "the former claim stays")
	}
}
