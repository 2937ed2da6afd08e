package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// claimed adds claim templates of 1Gi, but for names that have one.
func claimed(names ...string) setOption {
	return func(s *v1beta1.CloneSet) {
		for _, name := range names {
			if !slices.ContainsFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name }) {
				s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, gen.Claim(name, "1Gi"))
			}
		}
	}
}

func reusing(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.EnablePVCReuse = true }

// claim is a claim of the set for an instance.
func (w *world) claim(name, id string) *world {
	c := gen.Claim(name+"-web-"+id, "1Gi")
	c.Labels = map[string]string{contract.InstanceIDLabel: id}
	c.UID = gen.UID(c.Name)
	c.OwnerReferences = []metav1.OwnerReference{controllerRef(w.set)}
	w.claims = append(w.claims, &c)
	return w
}

func created(t *testing.T, p Plan) []action.Action {
	t.Helper()
	var all []action.Action
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Verb == action.Create {
				all = append(all, a)
			}
		}
	}
	return all
}

func TestNewPod(t *testing.T) {
	w := given(t, 1, claimed("data"))
	creates := created(t, w.plan())
	require.Len(t, creates, 1)
	o := creates[0].Object.(*corev1.Pod)
	id := o.Labels[contract.InstanceIDLabel]
	assert.Len(t, id, 5)
	assert.Empty(t, strings.Trim(id, idAlphabet))
	assert.Equal(t, "web-"+id, o.Name)
	assert.Equal(t, "web-", o.GenerateName)
	assert.Equal(t, map[string]string{
		"app":                        "web",
		contract.InstanceIDLabel:     id,
		contract.RevisionLabel:       w.revisions[1].Name,
		contract.TemplateHashLabel:   short(w.revisions[1]),
		contract.LifecycleStateLabel: contract.LifecyclePreparingNormal,
	}, o.Labels)
	assert.Equal(t, "2026-01-02T12:00:00Z", o.Annotations[contract.LifecycleTimestampAnnotation])
	assert.Equal(t, []metav1.OwnerReference{controllerRef(w.set)}, o.OwnerReferences)
	assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}, {ConditionType: contract.KruisePodReady}}, o.Spec.ReadinessGates)
	assert.Equal(t, corev1.PullAlways, o.Spec.Containers[0].ImagePullPolicy)
	assert.Equal(t, "data", o.Spec.Volumes[0].Name)
	assert.Equal(t, "data-web-"+id, o.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)

	require.Len(t, creates[0].Prerequisites, 1)
	claim := creates[0].Prerequisites[0].(*corev1.PersistentVolumeClaim)
	assert.Equal(t, "data-web-"+id, claim.Name)
	assert.Equal(t, map[string]string{"app": "web", contract.InstanceIDLabel: id}, claim.Labels)
	assert.True(t, metav1.IsControlledBy(claim, w.set))
	assert.Equal(t, "succeed to create pod web-"+id, creates[0].Event.Note)
}

func TestRevisionLabelIsAlwaysLegal(t *testing.T) {
	w := given(t, 1)
	w.featureGates.ShortHash = true
	assert.Equal(t, short(w.revisions[1]), created(t, w.plan())[0].Object.GetLabels()[contract.RevisionLabel])
	w = given(t, 1, func(s *v1beta1.CloneSet) { s.Name = strings.Repeat("w", 60) })
	assert.Equal(t, short(w.revisions[1]), created(t, w.plan())[0].Object.GetLabels()[contract.RevisionLabel])
}

func TestNamesOfPodsAreAlwaysLegal(t *testing.T) {
	w := given(t, 1, func(s *v1beta1.CloneSet) { s.Name = strings.Repeat("w", 250) })
	o := created(t, w.plan())[0].Object.(*corev1.Pod)
	assert.Empty(t, validation.IsDNS1123Subdomain(o.Name), o.Name)
	assert.Equal(t, strings.Repeat("w", 58)+o.Labels[contract.InstanceIDLabel], o.Name)
	assert.Equal(t, strings.Repeat("w", 58), o.GenerateName)
}

// A pod that has lost its label tells its id by its name, whether that was cut or is one that OpenKruise has made.
func TestAdoptedPodsKeepTheIDInTheirName(t *testing.T) {
	long := strings.Repeat("w", 100)
	for _, prefix := range []string{long + "-", long[:58]} {
		w := given(t, 1, func(s *v1beta1.CloneSet) { s.Name = long })
		assert.Equal(t, "b2c4d", newPass(w.snapshot()).idForAdopted(gen.Pod(prefix+"b2c4d")))
	}
}

func TestIDsAreNeverUsedTwice(t *testing.T) {
	w := given(t, 2000)
	seen := map[string]bool{}
	for range 2000 / action.MaxCreates {
		for _, a := range created(t, w.plan()) {
			id := a.Object.GetLabels()[contract.InstanceIDLabel]
			assert.False(t, seen[id], id)
			seen[id] = true
			w.pods = append(w.pods, a.Object.(*corev1.Pod))
		}
	}
	assert.Len(t, seen, 2000)
}

func TestClaimsAreReusedWhenAsked(t *testing.T) {
	w := given(t, 2, claimed("data"), reusing).updated(1).claim("data", "new0").claim("data", "lost1").claim("old", "")
	o := created(t, w.plan())[0].Object
	assert.Equal(t, "web-lost1", o.GetName(), "the free id is taken, the claim without an id never")
}

// A new pod takes the claims, the id and the name of one that is about to end, once it has; one that does not end
// holds up nobody for ever.
func TestNewPodsWaitForClaimsThatAreAboutToBeFree(t *testing.T) {
	leaving := func(since time.Duration) gen.PodOption {
		return gen.Change(func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: now.Add(-since)} })
	}
	failed := gen.Change(func(o *corev1.Pod) { o.Status.Phase = corev1.PodFailed })
	for name, c := range map[string]struct {
		replicas int32
		pods     []gen.PodOption
		creates  int
		wake     time.Duration
	}{
		"one waits":                    {1, []gen.PodOption{leaving(0)}, 0, claimWaitLimit},
		"as long as its grace":         {1, []gen.PodOption{leaving(-time.Hour)}, 0, time.Hour + claimWaitLimit},
		"others do not":                {3, []gen.PodOption{leaving(0)}, 2, claimWaitLimit},
		"each pod is waited for":       {3, []gen.PodOption{leaving(10 * time.Second), leaving(0)}, 1, claimWaitLimit - 10*time.Second},
		"no more than are wanted":      {0, []gen.PodOption{leaving(0)}, 0, 0},
		"it should be gone":            {1, []gen.PodOption{leaving(claimWaitLimit)}, 1, 0},
		"it has failed":                {1, []gen.PodOption{failed}, 1, 0},
		"it has failed on its way out": {1, []gen.PodOption{gen.Change(func(o *corev1.Pod) { failed(o); leaving(0)(o) })}, 0, claimWaitLimit},
		"nothing is on its way":        {2, nil, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, c.replicas, claimed("data"), reusing)
			for i, o := range c.pods {
				w.updated(1, o).claim("data", fmt.Sprintf("new%d", i))
			}
			todo := w.plan()
			creates := created(t, todo)
			assert.Len(t, creates, c.creates, text(todo))
			for _, a := range creates {
				assert.NotContains(t, []string{"web-new0", "web-new1"}, a.Object.GetName())
			}
			assert.Equal(t, c.wake, todo.RequeueAfter, text(todo))
			if c.wake > 0 {
				assert.Contains(t, text(todo), "wait: ClaimsInUse web-new0: a new pod gets its PVCs and its name after its deletion")
			}
		})
	}
	w := given(t, 1, claimed("data")).updated(1, leaving(0)).claim("data", "new0")
	assert.Len(t, created(t, w.plan()), 1, "claims are not reused")
	w = given(t, 1, claimed("data"), reusing).updated(1, leaving(0))
	assert.Len(t, created(t, w.plan()), 1, "the pod takes its claims along")
	w = given(t, 1, claimed("data", "log"), reusing).claim("data", "lost1").claim("log", "lost1")
	w.claims[1].DeletionTimestamp = &metav1.Time{Time: now}
	assert.NotEqual(t, "web-lost1", created(t, w.plan())[0].Object.GetName(), "one of its claims is about to go")
}

// The name that goes with a claim may be somebody else's.
func TestTakenAreNotTriedAgain(t *testing.T) {
	w := given(t, 1, claimed("data"), reusing).claim("data", "lost1")
	s := w.snapshot()
	s.TakenNames = map[string]time.Time{"web-lost1": now}
	assert.NotEqual(t, "web-lost1", created(t, Compute(s))[0].Object.GetName())
	w = given(t, 0, claimed("data")).claim("data", "lost1")
	s = w.snapshot()
	s.TakenNames = map[string]time.Time{"data-web-lost1": now.Add(time.Minute)}
	assert.Equal(t, "wake after 1m0s\n", text(Compute(s)), "a pod of somebody else mounts it")
}

// What a pod mounts is in use, whoever's the pod is and whatever its labels say.
func TestClaimsThatPodsMountStay(t *testing.T) {
	mounts := func(claim string) gen.PodOption {
		return gen.Change(func(o *corev1.Pod) { newpod.MountClaims(o, newpod.Mount{Volume: "data", Claim: claim}) })
	}
	bare := gen.Change(func(o *corev1.Pod) { delete(o.Labels, contract.InstanceIDLabel) })
	nothing := gen.Change(func(o *corev1.Pod) { o.Labels = nil })
	other := gen.Label(contract.InstanceIDLabel, "other")
	for name, c := range map[string]struct {
		options []gen.PodOption
		want    string
	}{
		"the id is lost": {[]gen.PodOption{mounts("data-web-new0"), bare},
			"own:\n  Adopt pod web-new0 (SelectorMatch): its instance id is missing\n"},
		"the id is lost and tells of nothing": {[]gen.PodOption{bare},
			"own:\n  Adopt pod web-new0 (SelectorMatch): its instance id is missing\n"},
		"all labels are lost": {[]gen.PodOption{mounts("data-web-new0"), nothing},
			"claims:\n  Release claim data-web-new0 (PodLeaving): it goes with pod web-new0\n" +
				"own:\n  Release pod web-new0 (SelectorMismatch): its labels no longer match spec.selector\n"},
		"the id is another one": {[]gen.PodOption{mounts("data-web-new0"), other}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 1, claimed("data")).updated(1, c.options...).claim("data", "new0")
			assert.Equal(t, c.want, text(w.plan()))
			reusing(w.set)
			assert.Equal(t, c.want, text(w.plan()), "claims are reused")
		})
	}
	t.Run("an orphan mounts it", func(t *testing.T) {
		w := given(t, 0, claimed("data")).claim("data", "lost1")
		s := w.snapshot()
		s.Orphans = []*corev1.Pod{gen.Pod("mine", gen.Label("app", "web"), mounts("data-web-lost1"))}
		assert.Equal(t, "own:\n  Adopt pod mine (SelectorMatch): it has no controller and matches spec.selector\n", text(Compute(s)))
	})
}

// A pod that goes takes no claim along that another one mounts, though both say that they are the same instance.
func TestNoPodTakesTheClaimsOfAnother(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		w := given(t, 1, claimed("data"), named("web-new1")).updated(2, gen.Label(contract.InstanceIDLabel, "new0")).claim("data", "new0")
		w.set.Spec.ScaleStrategy.EnablePVCReuse = reuse
		for _, o := range w.pods {
			newpod.MountClaims(o, newpod.Mount{Volume: "data", Claim: "data-" + o.Name})
		}
		todo := w.plan()
		require.Equal(t, 1, todo.Count(action.Delete), text(todo))
		assert.Zero(t, todo.Count(action.Release), text(todo))
		for a := range judges.Actions(todo.Steps, stepScale) {
			assert.Empty(t, a.Dependents)
		}
	}
}

// A pass that takes pods knows of them what they show, and not more.
func TestNoClaimIsDeletedWhilePodsAreTaken(t *testing.T) {
	w := given(t, 2, claimed("data"), named("web-new1")).updated(2).claim("data", "new1").claim("data", "lost1")
	s := w.snapshot()
	s.Orphans = []*corev1.Pod{gen.Pod("stray", gen.Label("app", "web"))}
	todo := Compute(s)
	require.Equal(t, 1, todo.Count(action.Adopt), text(todo))
	for a := range judges.Actions(todo.Steps, "") {
		if a.Verb == action.Delete {
			assert.Equal(t, "web-new1", a.Object.GetName())
			assert.Empty(t, a.Dependents)
		}
	}
}

// A pod whose deletion was refused, or is not wanted any more, does not take its claims along one day.
func TestPodsThatStayGiveTheirClaimsBack(t *testing.T) {
	back := "claims:\n  Adopt claim data-web-new0 (PodStays): pod web-new0 stays\n"
	for name, c := range map[string]struct {
		replicas int32
		options  []gen.PodOption
		want     string
	}{
		"it stays":             {1, nil, back},
		"it is to go":          {0, nil, "scale:\n  Delete pod web-new0 (ScaleIn): there are more pods than spec.replicas\n"},
		"its hook holds it":    {0, []gen.PodOption{gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingDelete)}, "wait: PreDeleteHook web-new0: the preDelete hook holds the pod\n"},
		"it is on its way out": {0, []gen.PodOption{gen.Terminating()}, ""},
		"it is to be released": {1, []gen.PodOption{gen.Label("app", "other")}, "own:\n  Release pod web-new0 (SelectorMismatch): its labels no longer match spec.selector\n"},
		"somebody named it":    {1, []gen.PodOption{gen.Label(contract.SpecifiedDeleteLabel, "true"), gen.NotReady(now)}, "scale:\n  Delete pod web-new0 (SpecifiedDelete): it is marked for deletion\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reuse := range []bool{false, true} {
				w := given(t, c.replicas, claimed("data"), hooked()).updated(1, c.options...).claim("data", "new0")
				w.set.Spec.ScaleStrategy.EnablePVCReuse = reuse
				newpod.MountClaims(w.pods[0], newpod.Mount{Volume: "data", Claim: "data-web-new0"})
				w.claims[0].OwnerReferences = []metav1.OwnerReference{ownership.PodReference(w.pods[0])}
				assert.Equal(t, c.want, text(w.plan()))
			}
		})
	}
	w := given(t, 1, claimed("data")).updated(1).claim("data", "new0")
	newpod.MountClaims(w.pods[0], newpod.Mount{Volume: "data", Claim: "data-web-new0"})
	for name, owners := range map[string][]metav1.OwnerReference{
		"of another pod": {ownership.PodReference(gen.Pod("web-other"))}, "of another controller": {*metav1.NewControllerRef(w.pods[0], corev1.SchemeGroupVersion.WithKind("Pod"))},
	} {
		w.claims[0].OwnerReferences = owners
		assert.Empty(t, text(w.plan()), name)
	}
}

func TestClaimsOfLostPodsGoWhenNotReused(t *testing.T) {
	w := given(t, 1, claimed("data")).updated(1).claim("data", "new0").claim("data", "lost1").claim("data", "leaving").claim("data", "")
	w.pods = append(w.pods, gen.Pod("web-leaving", gen.Terminating(), gen.OwnedBy(w.set), gen.Label(contract.InstanceIDLabel, "leaving")))
	assert.Equal(t, "claims:\n"+
		"  Delete claim data-web-lost1 (PodGone): the pod of its instance id is gone\n"+
		"  Release claim data-web-leaving (PodLeaving): it goes with pod web-leaving\n", text(w.plan()))
}

func TestReleasedPodsTakeTheirClaims(t *testing.T) {
	w := given(t, 1, claimed("data")).updated(1, gen.Label("app", "other")).claim("data", "new0")
	assert.Equal(t, "claims:\n"+
		"  Release claim data-web-new0 (PodLeaving): it goes with pod web-new0\n"+
		"own:\n"+
		"  Release pod web-new0 (SelectorMismatch): its labels no longer match spec.selector\n", text(w.plan()))
}

func TestOrphansKeepTheirClaims(t *testing.T) {
	w := given(t, 1, claimed("data")).claim("data", "stray")
	s := w.snapshot()
	s.Orphans = []*corev1.Pod{gen.Pod("web-stray", gen.Label("app", "web"), gen.Label(contract.InstanceIDLabel, "stray"))}
	todo := Compute(s)
	assert.Zero(t, todo.Count(action.Delete), text(todo))
}

func TestClaimsOfOrphansAreNotReused(t *testing.T) {
	w := given(t, 2, claimed("data"), reusing).claim("data", "stray")
	s := w.snapshot()
	s.Orphans = []*corev1.Pod{gen.Pod("web-stray", gen.Label("app", "web"), gen.Label(contract.InstanceIDLabel, "stray"))}
	creates := created(t, Compute(s))
	require.Len(t, creates, 1)
	assert.NotEqual(t, "web-stray", creates[0].Object.GetName())
}

func TestDeletedPodsTakeTheirClaims(t *testing.T) {
	w := given(t, 0, claimed("data")).updated(1).claim("data", "new0")
	todo := w.plan()
	require.Len(t, todo.Steps, 1, todo.String())
	a := todo.Steps[0].Actions[0]
	assert.Equal(t, action.Delete, a.Verb)
	require.Len(t, a.Dependents, 1)
	assert.Equal(t, "data-web-new0", a.Dependents[0].GetName())
}

// Where claims are reused, one that is left behind by a crash would go to the next pod.
func TestReusedClaimsBelongToTheirPodBeforeItIsDeleted(t *testing.T) {
	w := given(t, 0, claimed("data"), reusing).updated(1).claim("data", "new0").claim("data", "other")
	assert.Equal(t, "claims:\n"+
		"  Release claim data-web-new0 (PodLeaving): it goes with pod web-new0\n"+
		"scale:\n"+
		"  Delete pod web-new0 (ScaleIn): there are more pods than spec.replicas\n", text(w.plan()))
}

func TestReleaseAndAdopt(t *testing.T) {
	w := given(t, 1).updated(1, gen.Label("app", "other"))
	todo := w.plan()
	assert.Equal(t, 1, todo.Count(action.Release), todo.String())
	assert.Zero(t, todo.Count(action.Create), "the pod counts until it is released")
	w = given(t, 1).updated(1)
	s := w.snapshot()
	s.Orphans = []*corev1.Pod{gen.Pod("stray", gen.Label("app", "web"))}
	adopted := Compute(s)
	require.Equal(t, 1, adopted.Count(action.Adopt), adopted.String())
	labels := adopted.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
	assert.NotEmpty(t, labels[contract.InstanceIDLabel], "a pod without an id gets one")
}

// An id that somebody has removed comes back, because claims are known by it.
func TestLostIDsComeBack(t *testing.T) {
	for name, want := range map[string]string{"web-bcd24": "bcd24", "web-stray": "", "web-bcd2": "", "bcd24": "", "web-kkkkk": ""} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 2).updated(1, gen.Label(contract.InstanceIDLabel, "kkkkk"))
			w.pods = append(w.pods, gen.Pod(name, gen.Label("app", "web"), gen.OwnedBy(w.set)))
			todo := w.plan()
			require.Equal(t, 1, todo.Count(action.Adopt), text(todo))
			assert.Zero(t, todo.Count(action.Create), text(todo))
			labels := todo.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
			got := labels[contract.InstanceIDLabel]
			assert.Contains(t, text(todo), "its instance id is missing")
			if want != "" {
				assert.Equal(t, want, got)
			} else {
				assert.NotContains(t, []any{"", "kkkkk", "bcd24"}, got)
			}
		})
	}
}

func TestAdoptedPodsCountAtOnce(t *testing.T) {
	w := given(t, 2).updated(1)
	s := w.snapshot()
	s.Orphans = []*corev1.Pod{gen.Pod("web-stray", gen.Label("app", "web"), gen.Label(contract.InstanceIDLabel, "stray"))}
	todo := Compute(s)
	assert.Equal(t, 1, todo.Count(action.Adopt), text(todo))
	assert.Zero(t, todo.Count(action.Create), text(todo))
}

func TestPodsToDeleteAreForgottenWithTheirPods(t *testing.T) {
	w := given(t, 1, named("web-new0", "gone")).updated(1, gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label("hook", "on"))
	hooked()(w.set)
	todo := w.plan()
	require.Equal(t, 1, todo.Count(action.PatchSpec), todo.String())
	body := todo.Steps[0].Actions[0].Patches[0].Body
	assert.Equal(t, []any{"web-new0"}, body["spec"].(map[string]any)["scaleStrategy"].(map[string]any)["podsToDelete"])
}

func TestHistoryIsRecordedAndTruncated(t *testing.T) {
	w := given(t, 1, func(s *v1beta1.CloneSet) { s.Spec.RevisionHistoryLimit = new(int32) }).updated(1)
	s := w.snapshot()
	s.Chosen.Current = s.Chosen.Update
	assert.Equal(t, "history:\n  Delete controllerrevision "+w.revisions[0].Name+" (HistoryLimit): beyond spec.revisionHistoryLimit\n", text(Compute(s)))
	s.Chosen.Current = w.revisions[0]
	assert.Empty(t, text(Compute(s)), "the current revision is kept")
	s.Chosen.Create = true
	todo := Compute(s)
	assert.Equal(t, 1, todo.Count(action.Create), text(todo))
	s.Chosen.Create, s.Chosen.Renumber, s.Chosen.Number = false, true, 3
	todo = Compute(s)
	assert.Equal(t, 1, todo.Count(action.PatchSpec), text(todo))
}

func text(p Plan) string { return p.String() }
