package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func claimed(names ...string) setOption {
	return func(s *v1beta1.CloneSet) {
		for _, name := range names {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, gen.Claim(name, "1Gi"))
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

	require.Len(t, creates[0].First, 1)
	claim := creates[0].First[0].(*corev1.PersistentVolumeClaim)
	assert.Equal(t, "data-web-"+id, claim.Name)
	assert.Equal(t, map[string]string{"app": "web", contract.InstanceIDLabel: id}, claim.Labels)
	assert.True(t, metav1.IsControlledBy(claim, w.set))
	assert.Equal(t, "succeed to create pod web-"+id, creates[0].Event.Note)
}

func TestRevisionLabelIsAlwaysLegal(t *testing.T) {
	w := given(t, 1)
	w.gates.ShortHash = true
	assert.Equal(t, short(w.revisions[1]), created(t, w.plan())[0].Object.GetLabels()[contract.RevisionLabel])
	w = given(t, 1, func(s *v1beta1.CloneSet) { s.Name = strings.Repeat("w", 60) })
	assert.Equal(t, short(w.revisions[1]), created(t, w.plan())[0].Object.GetLabels()[contract.RevisionLabel])
}

func TestIDsAreNeverUsedTwice(t *testing.T) {
	w := given(t, 2000)
	seen := map[string]bool{}
	for _, a := range created(t, w.plan()) {
		id := a.Object.GetLabels()[contract.InstanceIDLabel]
		assert.False(t, seen[id], id)
		seen[id] = true
	}
	assert.Len(t, seen, 2000)
}

func TestClaimsAreReusedWhenAsked(t *testing.T) {
	w := given(t, 2, claimed("data"), reusing).updated(1).claim("data", "new0").claim("data", "lost1").claim("old", "")
	o := created(t, w.plan())[0].Object
	assert.Equal(t, "web-lost1", o.GetName(), "the free id is taken, the claim without an id never")
	w.pods = append(w.pods, gen.Pod("web-lost1", gen.Terminating(), gen.OwnedBy(w.set), gen.Label(contract.InstanceIDLabel, "lost1")))
	assert.NotEqual(t, "web-lost1", created(t, w.plan())[0].Object.GetName(), "its pod has not left yet")
}

func TestClaimsOfLostPodsGoWhenNotReused(t *testing.T) {
	w := given(t, 1, claimed("data")).updated(1).claim("data", "new0").claim("data", "lost1").claim("data", "leaving").claim("data", "")
	w.pods = append(w.pods, gen.Pod("web-leaving", gen.Terminating(), gen.OwnedBy(w.set), gen.Label(contract.InstanceIDLabel, "leaving")))
	assert.Equal(t, "claims:\n"+
		"  Delete claim data-web-lost1 (PodGone): no pod has its instance id\n"+
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
	require.Len(t, a.Then, 1)
	assert.Equal(t, "data-web-new0", a.Then[0].GetName())
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
			s := w.snapshot()
			s.Orphans = []*corev1.Pod{gen.Pod(name, gen.Label("app", "web"), gen.OwnedBy(w.set))}
			todo := Compute(s)
			require.Equal(t, 1, todo.Count(action.Adopt), text(todo))
			assert.Zero(t, todo.Count(action.Create), text(todo))
			labels := todo.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
			got := labels[contract.InstanceIDLabel]
			assert.Contains(t, text(todo), "it has lost its instance id")
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
