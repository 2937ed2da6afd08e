package whatif_test

import (
	"io/fs"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/config"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/whatif"
)

// All three pods of ReplicaSet web are deleted at once.
func TestAsManyPodsGoAsTheBudgetSpares(t *testing.T) {
	for name, c := range map[string]struct {
		limit   func(*v1beta1.PodUnavailableBudgetSpec)
		granted int
		lowest  whatif.Level
	}{
		"a maximum":            {maxUnavailable(intstr.FromInt32(1)), 1, whatif.Level{Available: 2, Desired: 2, Total: 3}},
		"a minimum":            {minAvailable(intstr.FromInt32(1)), 2, whatif.Level{Available: 1, Desired: 1, Total: 3}},
		"a share may go":       {maxUnavailable(intstr.FromString("50%")), 2, whatif.Level{Available: 1, Desired: 1, Total: 3}},
		"a share must stay":    {minAvailable(intstr.FromString("50%")), 1, whatif.Level{Available: 2, Desired: 2, Total: 3}},
		"all must stay":        {maxUnavailable(intstr.FromInt32(0)), 0, whatif.Level{Available: 3, Desired: 3, Total: 3}},
		"all may go":           {maxUnavailable(intstr.FromString("100%")), 3, whatif.Level{Total: 3}},
		"more than there are":  {minAvailable(intstr.FromInt32(5)), 0, whatif.Level{Available: 3, Desired: 5, Total: 3}},
		"a limit of no number": {maxUnavailable(intstr.FromString("some")), 0, whatif.Level{Available: 3, Desired: 3, Total: 3}},
		"a number of its own": {func(s *v1beta1.PodUnavailableBudgetSpec) {
			maxUnavailable(intstr.FromInt32(1))(s)
			s.ProtectTotalReplicas = new(int32(5))
		}, 0, whatif.Level{Available: 3, Desired: 4, Total: 5}},
		"other pods": {func(s *v1beta1.PodUnavailableBudgetSpec) {
			maxUnavailable(intstr.FromInt32(1))(s)
			s.Selector.MatchLabels["app"] = "db"
		}, 3, whatif.Level{}},
		"a target":               {target("apps/v1", "ReplicaSet", "web"), 1, whatif.Level{Available: 2, Desired: 2, Total: 3}},
		"a target of other pods": {target("apps/v1", "ReplicaSet", "db"), 3, whatif.Level{}},
		"a kind of other pods":   {target("apps.example.com/v1", "ReplicaSet", "web"), 3, whatif.Level{}},
		"changes alone": {func(s *v1beta1.PodUnavailableBudgetSpec) {
			maxUnavailable(intstr.FromInt32(0))(s)
			s.ProtectOperations = []v1beta1.PubOperation{v1beta1.UpdateOperation}
		}, 3, whatif.Level{Available: 0, Desired: 3, Total: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			a := startWeb(t, 3, c.limit)
			granted := 0
			for _, pod := range a.Pods() {
				if err := a.remove(pod.Name); err != nil {
					a.assertRefused(err)
					continue
				}
				granted++
			}
			assert.Equal(t, c.granted, granted)
			s := a.state()
			assert.Equal(t, c.lowest, s.Lowest)
			assert.Equal(t, 3-c.granted, s.Refused)
			assert.Equal(t, c.lowest.Available, s.Status.CurrentAvailable)
			assert.Equal(t, c.lowest.Desired, s.Status.DesiredAvailable)
		})
	}
}

func target(apiVersion, kind, name string) func(*v1beta1.PodUnavailableBudgetSpec) {
	return func(s *v1beta1.PodUnavailableBudgetSpec) {
		maxUnavailable(intstr.FromInt32(1))(s)
		s.Selector, s.TargetReference = nil, &v1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
}

func TestARefusalIsTheAnswerOfAServer(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(1)))
	require.NoError(t, a.remove("web-0"))
	err := a.remove("web-1")
	a.assertRefused(err)
	const why = "PodUnavailableBudget default/web refuses DELETE of pod web-1: 2 available, 2 required of 3 (maxUnavailable 1); blocked by: web-0 (terminating); " +
		"retry later, or exempt the pod with annotation pub.kruise.io/no-protect=true"
	require.EqualError(t, err, `admission webhook "vpod.budget.kb.io" denied the request: pods "web-1" is forbidden: `+why)
	assert.Equal(t, progress.Blocked, progress.OutcomeOf(err).State, "operators wait")
	assert.Equal(t, why, a.state().LastRefusal)
}

func TestTheNamesOfWebhooksAreThoseOfTheManifest(t *testing.T) {
	manifest, err := fs.ReadFile(config.Files, "webhook/validating.yaml")
	require.NoError(t, err)
	a := startWeb(t, 1, maxUnavailable(intstr.FromInt32(0)))
	for name, refused := range map[string]error{
		"vpod.budget.kb.io":       a.remove("web-0"),
		"vpodupdate.budget.kb.io": a.change("web-0", "", setImage),
		"vpodstatus.budget.kb.io": a.change("web-0", "status", leaveService),
	} {
		require.ErrorContains(t, refused, `"`+name+`"`)
		assert.Contains(t, string(manifest), "\n- name: "+name+"\n")
	}
}

func leaveService(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == contract.InPlaceUpdateReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
}

func resize(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
}

// A budget spares no pod of ReplicaSet web.
func TestChangesAreRefusedThatDisruptAPod(t *testing.T) {
	burstable := gen.Change(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	for name, c := range map[string]struct {
		operations  []v1beta1.PubOperation
		pod         []gen.PodOption
		subresource string
		edit        func(*corev1.Pod)
		refused     bool
	}{
		"an image":                    {edit: setImage, refused: true},
		"an image of a free pod":      {pod: []gen.PodOption{gen.NotReady(gen.Epoch())}, edit: setImage},
		"an image of an exempt pod":   {pod: []gen.PodOption{gen.Annotation(v1beta1.NoProtectAnnotation, "true")}, edit: setImage},
		"an image, deletions only":    {operations: []v1beta1.PubOperation{v1beta1.DeleteOperation}, edit: setImage},
		"a label":                     {edit: func(pod *corev1.Pod) { pod.Labels["team"] = "shop" }},
		"the label of an unavailable": {edit: func(pod *corev1.Pod) { pod.Labels[v1beta1.UnavailableLabelPrefix+"x"] = "" }, refused: true},
		"a condition":                 {subresource: "status", edit: leaveService, refused: true},
		"a resize":                    {pod: []gen.PodOption{burstable}, subresource: "resize", edit: resize},
		"a resize that is named":      {operations: []v1beta1.PubOperation{v1beta1.ResizeOperation}, pod: []gen.PodOption{burstable}, subresource: "resize", edit: resize, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, b := replicaSet(1), budget(maxUnavailable(intstr.FromInt32(0)))
			b.Spec.ProtectOperations = c.operations
			a := start(t, append(pods(1, set, c.pod...), set, b)...)
			err := a.change("web-0", c.subresource, c.edit)
			if c.refused {
				a.assertRefused(err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.refused, a.state().Refused == 1)
		})
	}
}

func TestAGrantEnds(t *testing.T) {
	ask := func(a *app) error {
		return a.budgets.Admit(a.Cluster(), cluster.Event{Type: cluster.Deleted, Actor: cluster.UserActor, Object: a.pod("web-0"), Old: a.pod("web-0")})
	}
	for name, c := range map[string]struct {
		disrupt func(*app) error
		before  time.Duration // it has not ended
		after   time.Duration // it has
		then    func(*app)    // between the two
	}{
		"when a deleted pod is replaced": {
			func(a *app) error { return a.remove("web-0") }, time.Minute, 2 * time.Minute, func(a *app) { a.replace("web-x") },
		},
		"when a changed pod is back": {
			func(a *app) error { return a.change("web-0", "", setImage) }, time.Second, time.Minute, func(*app) {},
		},
		"when a pod goes back into service": {
			func(a *app) error { return a.change("web-0", "status", leaveService) }, time.Minute, 2 * time.Minute, func(a *app) {
				require.NoError(a.t, a.change("web-0", "status", func(pod *corev1.Pod) {
					for i := range pod.Status.Conditions {
						pod.Status.Conditions[i].Status = corev1.ConditionTrue
					}
				}))
			},
		},
		"when no deletion followed": {ask, disruption.Life - time.Second, disruption.Life, func(*app) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(1)))
			require.NoError(t, c.disrupt(a))
			a.assertRefused(a.remove("web-1"))
			a.Advance(c.before)
			a.assertRefused(a.remove("web-1"))
			c.then(a)
			a.Advance(c.after - c.before)
			require.NoError(t, a.remove("web-1"), a.Story())
			assert.Equal(t, whatif.Level{Available: 2, Desired: 2, Total: 3}, a.state().Lowest)
			assert.Equal(t, 2, a.state().Refused)
		})
	}
}

func TestAGrantThatHasEndedIsNoPartOfTheState(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(1)))
	require.NoError(t, a.change("web-0", "", setImage))
	assert.Equal(t, int32(0), a.state().Status.UnavailableAllowed)
	a.Advance(time.Minute)
	assert.Equal(t, int32(1), a.state().Status.UnavailableAllowed)
}

func TestWhoHasAGrantNeedsNoOther(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(1)))
	require.NoError(t, a.change("web-0", "status", leaveService))
	require.NoError(t, a.change("web-0", "", setImage))
	assert.Equal(t, whatif.Level{Available: 2, Desired: 2, Total: 3}, a.state().Lowest)
	assert.Zero(t, a.state().Refused)
}

func TestADryRunIsAnsweredAndLeavesNoTrace(t *testing.T) {
	a := startWeb(t, 2, maxUnavailable(intstr.FromInt32(1)))
	dryRun := func(name string) error {
		return a.DryRun(func() (action.Object, error) { return nil, a.change(name, "", setImage) })
	}
	require.NoError(t, dryRun("web-0"))
	require.NoError(t, dryRun("web-1"))
	assert.Equal(t, int32(2), a.state().Status.CurrentAvailable)
	require.NoError(t, a.remove("web-0"))
	a.assertRefused(dryRun("web-1"))
	assert.Zero(t, a.state().Refused)
}

func TestEditsCount(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(0)))
	a.assertRefused(a.remove("web-0"))
	require.NoError(t, cluster.Change(a, cluster.UserActor, "", replicaSet(3), func(s *appsv1.ReplicaSet) { s.Spec.Replicas = new(int32(2)) }))
	assert.Equal(t, int32(2), a.state().Status.DesiredAvailable, "of the workload")
	require.NoError(t, a.remove("web-0"))
	a.assertRefused(a.remove("web-1"))
	require.NoError(t, cluster.Change(a, cluster.UserActor, "", budget(maxUnavailable(intstr.FromInt32(0))), func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	}))
	assert.Equal(t, int32(1), a.state().Status.DesiredAvailable, "of the budget")
	require.NoError(t, a.remove("web-1"))
	assert.Equal(t, whatif.Level{Available: 1, Desired: 1, Total: 2}, a.state().Lowest)
}

// Pods that fail by themselves are no matter of a budget, but they count.
func TestTheLowestLevelIsBelowTheLimitWhenPodsFail(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(1)))
	for _, name := range []string{"web-0", "web-1"} {
		require.NoError(t, a.change(name, "status", func(pod *corev1.Pod) { gen.NotReady(gen.Epoch())(pod) }))
	}
	require.NoError(t, a.remove("web-0"), "it serves nobody")
	a.assertRefused(a.remove("web-2"))
	assert.Equal(t, whatif.Level{Available: 1, Desired: 2, Total: 3}, a.state().Lowest)
}

func TestTheOwnersOfPods(t *testing.T) {
	fleet := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": map[string]any{"namespace": gen.Namespace, "name": "web", "uid": "fleet"},
	}}
	with := func(content map[string]any) *unstructured.Unstructured {
		o := fleet.DeepCopy()
		maps.Copy(o.Object, content)
		return o
	}
	set := replicaSet(3)
	owned := set.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: new(true)}}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "deployment"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(4)), Selector: set.Spec.Selector},
	}
	daemons := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "daemons"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 7},
	}
	all := maxUnavailable(intstr.FromInt32(0))
	for name, c := range map[string]struct {
		owner  action.Object
		others []action.Object
		limit  func(*v1beta1.PodUnavailableBudgetSpec)
		total  int32
		why    string // the reason of condition ReplicasUnknown
	}{
		"a Deployment":              {owned, []action.Object{owned, deployment}, all, 4, ""},
		"a Deployment as target":    {owned, []action.Object{owned, deployment}, target("apps/v1", "Deployment", "web"), 4, ""},
		"a Deployment that is lost": {owned, []action.Object{owned}, all, 3, ""},
		"a DaemonSet":               {daemons, []action.Object{daemons}, all, 7, ""},
		"a kind with replicas":      {fleet, []action.Object{with(map[string]any{"spec": map[string]any{"replicas": int64(5)}})}, all, 5, ""},
		"a kind with replicas as target": {
			fleet, []action.Object{with(map[string]any{"spec": map[string]any{"replicas": int64(5)}, "status": map[string]any{"labelSelector": "app=web"}})},
			target("example.com/v1", "Fleet", "web"), 5, "",
		},
		"a kind without replicas": {fleet, []action.Object{fleet}, all, 3, disruption.ReasonNoScale},
		"a kind that is unknown":  {fleet, nil, all, 3, disruption.ReasonNotServed},
		"a target of a kind that is unknown": {
			fleet, nil, target("example.com/v1", "Fleet", "web"), 3, disruption.ReasonNotServed,
		},
		"a kind that is unknown, and a number of its own": {fleet, nil, func(s *v1beta1.PodUnavailableBudgetSpec) { all(s); s.ProtectTotalReplicas = new(int32(6)) }, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, append(append(pods(3, c.owner), c.others...), budget(c.limit))...)
			s := a.state()
			assert.Equal(t, c.total, s.Status.TotalReplicas)
			assert.Equal(t, int32(3), s.Status.CurrentAvailable)
			reason := ""
			for _, condition := range s.Status.Conditions {
				if condition.Type == disruption.ConditionReplicasUnknown {
					reason = condition.Reason
				}
			}
			assert.Equal(t, c.why, reason)
		})
	}
}

// Nobody knows whether the pods belong to the target: their owners own each other.
func TestWhatCannotBeJudgedIsRefused(t *testing.T) {
	fleet := func(name, owner string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Fleet", "spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"labelSelector": "app=web"},
		}}
		o.SetNamespace(gen.Namespace)
		o.SetName(name)
		o.SetUID(types.UID(name))
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Fleet", Name: owner, UID: types.UID(owner), Controller: new(true)}})
		return o
	}
	one, other := fleet("one", "other"), fleet("other", "one")
	a := start(t, append(pods(1, one), one, other, fleet("target", "one"), budget(target("example.com/v1", "Fleet", "target")))...)
	err := a.remove("web-0")
	require.ErrorContains(t, err, `admission webhook "vpod.budget.kb.io" denied the request: find the owners of pod web-0`)
	assert.Equal(t, progress.Blocked, progress.OutcomeOf(err).State)
	require.ErrorContains(t, a.state().Err, "there are more than 10")
	assert.Zero(t, a.state().Refused, "no budget has refused it")
}

func TestPodsOfADeletedOwnerAreFree(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(0)))
	a.assertRefused(a.remove("web-0"))
	require.NoError(t, a.Delete(cluster.UserActor, replicaSet(3)))
	require.NoError(t, a.remove("web-0"))
	a.Advance(time.Minute)
	assert.Empty(t, a.Pods(), "the garbage collector deletes the others")
}

func TestPodsOfALostNodeAreFree(t *testing.T) {
	a := startWeb(t, 3, maxUnavailable(intstr.FromInt32(0)))
	a.AddNodes(2)
	a.assertRefused(a.remove("web-0"))
	a.RemoveNode("node-0")
	require.NoError(t, a.remove("web-0"))
}

func TestBudgetsOfAnyVersionCount(t *testing.T) {
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
		"metadata": map[string]any{
			"namespace": gen.Namespace, "name": "web", "annotations": map[string]any{v1beta1.ProtectOperationsAnnotation: "DELETE"},
		},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "maxUnavailable": int64(0)},
	}}
	set := replicaSet(1)
	a := start(t, append(pods(1, set), set, old)...)
	a.assertRefused(a.remove("web-0"))
	require.NoError(t, a.change("web-0", "", setImage))
}

// Two budgets cover the pods: either can refuse, and a refusal of one is no charge to the other.
func TestEachBudgetMustGrant(t *testing.T) {
	set, strict := replicaSet(3), budget(maxUnavailable(intstr.FromInt32(0)))
	strict.Name = "strict"
	a := start(t, append(pods(3, set), set, strict)...)
	a.Add(budget(maxUnavailable(intstr.FromInt32(1))))
	a.assertRefused(a.remove("web-0"))
	states := a.budgets.States()
	require.Len(t, states, 2)
	assert.Equal(t, "strict", states[0].Budget.Name)
	assert.Equal(t, []int{1, 0}, []int{states[0].Refused, states[1].Refused})
	assert.Equal(t, int32(1), states[1].Status.UnavailableAllowed)
}

func TestKubeSystemIsExempt(t *testing.T) {
	set, b := replicaSet(1), budget(maxUnavailable(intstr.FromInt32(0)))
	set.Namespace, b.Namespace = metav1.NamespaceSystem, metav1.NamespaceSystem
	a := start(t, append(pods(1, set, gen.Namespaced(metav1.NamespaceSystem)), set, b)...)
	require.NoError(t, a.Delete(cluster.UserActor, a.Pods()[0]))
}
