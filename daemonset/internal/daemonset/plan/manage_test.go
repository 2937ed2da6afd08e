package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func TestWhichNodesHaveAPod(t *testing.T) {
	none, waiting := []string{}, given(t, 1, maxSurge("1")).updated("n1", failed)
	waiting.retry = map[string]time.Time{"n1": now.Add(time.Second)}
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"every node gets one", given(t, 3), []string{"create n1", "create n2", "create n3"}},
		{"only those without", given(t, 3).updated("n2"), []string{"create n1", "create n3"}},
		{"an old one is one", given(t, 1, deleting).old("n1"), none},
		{"a terminating one is one", given(t, 1).updated("n1", terminating), none},
		{"one that has ended and terminates is none", given(t, 1).updated("n1", terminating, failed), []string{"create n1"}},
		{"one on its way is one", given(t, 1).updated("n1", down, unassigned), none},
		{"new pods are new while paused", given(t, 1, pausing(true)), []string{"create n1"}},
		{"and with OnDelete", given(t, 1, deleting), []string{"create n1"}},
		{"and below the partition", given(t, 1, partition("1")), []string{"create n1"}},
		{"a taint lets none in", given(t, 1).node("n1", tainted(corev1.TaintEffectNoSchedule)), none},
		{"and none out", given(t, 1).node("n1", tainted(corev1.TaintEffectNoSchedule)).updated("n1"), none},
		{"NoExecute takes it away", given(t, 1).node("n1", tainted(corev1.TaintEffectNoExecute)).updated("n1"), []string{"delete n1"}},
		{"and all of them, ended or held", given(t, 1).node("n1", tainted(corev1.TaintEffectNoExecute)).updated("n1").updated("n1", failed).updated("n1", preparing).updated("n1", terminating), []string{"delete n1", "delete n1", "delete n1"}},
		{"a node that is gone takes unassigned ones along", given(t, 1).updated("n1 n2").updated("n3", down, unassigned), []string{"delete n3"}},
		{"a failed one is replaced", given(t, 1).updated("n1", failed), []string{"delete n1"}},
		{"and one that has succeeded", given(t, 1).updated("n1", gen.Phase(corev1.PodSucceeded)), []string{"delete n1"}},
		{"while paused, too", given(t, 1, pausing(true)).old("n1", failed), []string{"delete n1"}},
		{"burst", given(t, 5, burst("2")), []string{"create n1", "create n2"}},
		{"burst in percent, at least one", given(t, 5, burst("10%")), []string{"create n1"}},
		{"burst of deletions", given(t, 3, burst("2")).updated("n1 n2 n3", failed), []string{"delete n1", "delete n2"}},
		{"in a surge one that terminates stands in no way", given(t, 1, maxSurge("1")).updated("n1", terminating), []string{"create n1"}},
		{"nor one that its hook holds", given(t, 1, maxSurge("1"), hooked).old("n1", preparing, hookOn), []string{"create n1"}},
		{"a failed one does", waiting, none},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

func TestOfSeveralPodsOneStays(t *testing.T) {
	resizing := func(options ...setOption) *world {
		w := given(t, 1, append(options, asks("2"), minReady(10))...)
		w.featureGates.Resize = true
		return w
	}
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"the oldest", given(t, 1).updated("n1").updated("n1", created(2*time.Hour)), []string{"web-n1-0"}},
		{"one that has its node", given(t, 1).updated("n1", down).updated("n1", created(2*time.Hour), down, unassigned), []string{"web-n1-1"}},
		{"one that serves before an older one that does not", given(t, 1).updated("n1").updated("n1", created(2*time.Hour), down), []string{"web-n1-1"}},
		{"whichever its revision", given(t, 1, pausing(true)).updated("n1").old("n1", created(2*time.Hour)), []string{"web-n1-0"}},
		{"the first of the same age", given(t, 1).updated("n1 n1 n1"), []string{"web-n1-1", "web-n1-2"}},
		{"terminating ones count for nothing", given(t, 1).updated("n1").updated("n1", terminating), nil},
		{"in a surge an old one and a new one", given(t, 1, maxSurge("1")).old("n1").updated("n1", down), nil},
		{"of each the best", given(t, 1, maxSurge("1")).old("n1").old("n1", down).updated("n1", down).updated("n1", created(2*time.Hour), down), []string{"web-n1-2", "web-n1-1"}},
		{"the old one goes once the new one is available", given(t, 1, maxSurge("1")).old("n1").updated("n1"), []string{"web-n1-0"}},
		{"not before", given(t, 1, maxSurge("1"), minReady(10)).old("n1").updated("n1", young), nil},
		{"or once it is not ready", given(t, 1, maxSurge("1")).old("n1", down).updated("n1", down), []string{"web-n1-0"}},
		{"while paused, too", given(t, 1, maxSurge("1"), pausing(true)).old("n1").updated("n1"), []string{"web-n1-0"}},
		{"in a surge two old ones until one serves", resizing(maxSurge("1")).old("n1", awaiting(time.Second)).old("n1", young), nil},
		{"and then that one", resizing(maxSurge("1")).old("n1", awaiting(time.Second)).old("n1"), []string{"web-n1-0"}},
		{"two new ones, too", given(t, 1, maxSurge("1"), minReady(10)).updated("n1", young).updated("n1", young), nil},
		{"one that is resized before one that is too young", resizing(inPlace).updated("n1", awaiting(time.Second)).updated("n1", created(2*time.Hour), young), []string{"web-n1-1"}},
		{"one that serves, though specified for deletion, before one that does not", given(t, 1, maxSurge("1")).old("n1", gen.SpecifiedDelete()).old("n1", down), []string{"web-n1-1"}},
		{"while paused its successor stays, though its template is the former one", given(t, 1, maxSurge("1"), pausing(true)).old("n1", gen.SpecifiedDelete()).old("n1", down), nil},
		{"and takes its place", given(t, 1, maxSurge("1"), pausing(true)).old("n1", gen.SpecifiedDelete()).old("n1"), []string{"web-n1-0"}},
		{"out of reach, too", given(t, 1, maxSurge("1"), partition("1")).old("n1", gen.SpecifiedDelete()).old("n1", down), nil},
		{"and where the update leaves its node out", given(t, 3, reverting, maxSurge("1"), partition("1")).updated("n1 n3").old("n2", gen.SpecifiedDelete()).old("n2", down), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.deleted()) })
	}
}

func TestFailedPodsAreReplacedLaterEachTime(t *testing.T) {
	w := given(t, 2).updated("n1 n2", failed)
	w.retry = map[string]time.Time{"n1": now.Add(8 * time.Second), "n2": now.Add(-time.Second)}
	assert.Equal(t, []string{"delete n2"}, w.did())
	todo := w.plan()
	assert.Equal(t, 8*time.Second, todo.RequeueAfter)
	assert.Equal(t, []string{failures.WaitReason}, w.waits())
	require.Len(t, todo.Notices, 2, "and when the other one is")
	assert.Equal(t, EventPodFailed, todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, "Pod web-n2-1 on node n2 failed and is replaced")

	w = given(t, 1).updated("n1", gen.Phase(corev1.PodSucceeded))
	w.retry = map[string]time.Time{"n1": now.Add(8 * time.Second)}
	assert.Equal(t, []string{"delete n1"}, w.did(), "one that has succeeded waits for nothing")
	assert.Equal(t, EventPodSucceeded, w.plan().Notices[0].Reason)
}

func TestNewPods(t *testing.T) {
	created := func(w *world) *corev1.Pod {
		for a := range judges.Actions(w.plan().Steps, stepCreate) {
			return a.Object.(*corev1.Pod)
		}
		return nil
	}
	w := given(t, 1)
	o := created(w)
	assert.True(t, strings.HasPrefix(o.Name, "web-") && len(o.Name) == len("web-xxxxx"), o.Name)
	assert.Equal(t, "n1", eligibility.NodeOf(o))
	assert.Empty(t, o.Spec.NodeName)
	assert.Len(t, o.Spec.Tolerations, 6)
	assert.Equal(t, []metav1.OwnerReference{controllerRef(w.set)}, o.OwnerReferences)
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionLabel: revision.Hash(w.snapshot().Chosen.Update)}, o.Labels)
	assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}, o.Spec.ReadinessGates)
	assert.Empty(t, o.Annotations)
	assert.Empty(t, o.Spec.Containers[0].ImagePullPolicy)

	o = created(given(t, 1, inPlace))
	assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}, {ConditionType: contract.KruisePodReady}}, o.Spec.ReadinessGates)

	w = given(t, 1)
	w.featureGates.AssignDirectly, w.featureGates.AutoscalerAnnotation = true, true
	w.set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
	o = created(w)
	assert.Equal(t, "n1", o.Spec.NodeName)
	assert.Equal(t, directScheduler, o.Spec.SchedulerName)
	assert.Nil(t, o.Spec.Affinity)
	assert.Equal(t, "true", o.Annotations[contract.AutoscalerDaemonSetPodAnnotation])
	assert.Equal(t, "7", o.Labels[templateGenerationLabel])
}

// The worked examples: which nodes get their first pod.
func TestPartitionedScaling(t *testing.T) {
	cases := []struct {
		desired, updated int
		partition        string
		withPod          string
		want             string
	}{
		{10, 0, "10", "", ""},
		{10, 0, "9", "", "node-0"},
		{10, 1, "5", "node-0", "node-1 node-2 node-3 node-4"},
		{12, 5, "5", "node-0 node-1 node-2 node-3 node-4", "node-10 node-11"},
		{9, 4, "5", "node-0 node-1 node-2 node-3", ""},
		{9, 4, "0", "node-0 node-1 node-2 node-3", "node-4 node-5 node-6 node-7 node-8"},
		{10, 4, "100", "node-0 node-1 node-2 node-3", ""},
		{10, 0, "50%", "", "node-0 node-1 node-2 node-3 node-4"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d %d %s", c.desired, c.updated, c.partition), func(t *testing.T) {
			w := given(t, 0, partition(c.partition), partitionedScaling)
			for i := range c.desired {
				w.node(fmt.Sprintf("node-%d", i))
			}
			w.updated(c.withPod)
			want := []string{}
			for name := range strings.FieldsSeq(c.want) {
				want = append(want, "create "+name)
			}
			assert.Equal(t, want, w.did())
		})
	}
}

// Nodes that were without a pod stay so when the template changes, whatever the revision of the pods there are.
func TestPartitionedScalingGoesOnAfterAnEdit(t *testing.T) {
	w := given(t, 10, partition("3"), partitionedScaling).old("n1 n10 n2 n3 n4 n5 n6")
	w.had = map[string]bool{}
	for name := range strings.FieldsSeq("n1 n10 n2 n3 n4 n5 n6") {
		w.had[name] = true
	}
	assert.Equal(t, []string{"delete n6"}, w.did())
	w = given(t, 10, partition("2"), partitionedScaling).old("n1 n10 n2 n3 n4 n5 n6")
	assert.Contains(t, w.did(), "create n7")
	assert.NotContains(t, w.did(), "create n8")
}

func TestPartitionedScalingWithholdsNoPodFromANodeThatHadOne(t *testing.T) {
	w := given(t, 3, partition("3"), partitionedScaling)
	assert.Empty(t, w.did())
	w.had = map[string]bool{"n2": true}
	assert.Equal(t, []string{"create n2"}, w.did())
	w = given(t, 3, deleting, partitionedScaling)
	assert.Len(t, w.did(), 3, "without RollingUpdate it has no effect")
}

// Objects that were stored before the field was there have the annotation of v1alpha1.
func TestPartitionedScalingIsReadFromTheAnnotationUntilTheFieldIsWritten(t *testing.T) {
	annotated := func(s *v1beta1.DaemonSet) {
		s.Annotations = map[string]string{v1beta1.ProgressiveCreatePodAnnotation: "true"}
	}
	assert.Empty(t, given(t, 3, partition("3"), annotated).did())
	off := func(s *v1beta1.DaemonSet) { s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{} }
	assert.Len(t, given(t, 3, partition("3"), annotated, off).did(), 3)
}

func TestOwnership(t *testing.T) {
	w := given(t, 2).updated("n1", gen.Label("app", "other"))
	orphan := w.pod(w.revisions[0], "n2")
	orphan.OwnerReferences = nil
	w.orphans = append(w.orphans, orphan)
	var verbs []string
	for a := range judges.Actions(w.plan().Steps, "") {
		verbs = append(verbs, fmt.Sprint(a.Verb, " ", a.Object.GetName()))
	}
	assert.Equal(t, []string{"Release web-n1-0", "Adopt web-n2-1"}, verbs, "and nothing else is done to them, nor in their place")

	w = given(t, 1).updated("n1", gen.Change(func(o *corev1.Pod) { delete(o.Labels, contract.RevisionLabel) }))
	todo := w.plan()
	require.Equal(t, 1, todo.Count(action.Adopt))
	value, set := judges.LabelIn(todo.Steps[0].Actions[0], contract.RevisionLabel)
	assert.True(t, set, "the label by which pods are cached comes back")
	assert.Empty(t, value)
}

func TestAnEmptySelectorStopsEverything(t *testing.T) {
	w := given(t, 2)
	w.set.Spec.Selector = &metav1.LabelSelector{}
	w.orphans = append(w.orphans, w.pod(w.revisions[0], "n2"))
	todo := w.plan()
	assert.Empty(t, todo.Steps)
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, EventSelectsAll, todo.Notices[0].Reason)
	assert.Equal(t, corev1.EventTypeWarning, todo.Notices[0].Type)
}

func TestASetThatIsBeingDeletedDoesNothing(t *testing.T) {
	w := given(t, 2)
	w.set.DeletionTimestamp = &metav1.Time{Time: now}
	assert.Empty(t, w.plan().Steps)
}

func TestNamesOfPodsAreAlwaysLegal(t *testing.T) {
	w := given(t, 1, func(s *v1beta1.DaemonSet) { s.Name = strings.Repeat("w", 250) })
	for a := range judges.Actions(w.plan().Steps, stepCreate) {
		o := a.Object.(*corev1.Pod)
		assert.Empty(t, validation.IsDNS1123Subdomain(o.Name), o.Name)
		assert.Equal(t, strings.Repeat("w", 58), o.GenerateName)
		assert.Regexp(t, "^w{58}["+nameAlphabet+"]{5}$", o.Name)
		return
	}
	t.Fatal("no pod is created")
}
