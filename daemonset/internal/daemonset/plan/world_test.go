package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a DaemonSet "web" with two revisions, the older with image app:1 and the newer with app:2, on nodes n1, n2
// and so on, and pods of either.
type world struct {
	t            testing.TB
	set          *v1beta1.DaemonSet
	nodes        []*corev1.Node
	pods         []*corev1.Pod
	orphans      []*corev1.Pod
	revisions    []*appsv1.ControllerRevision
	retry        map[string]time.Time
	had          map[string]bool
	unready      map[string]time.Time
	refused      action.Refusals
	featureGates FeatureGates
	pulls        predownload.Jobs
}

type setOption func(*v1beta1.DaemonSet)

// newSet is DaemonSet "web" of image app:1 with maxUnavailable 1.
func newSet(change ...setOption) *v1beta1.DaemonSet {
	set := &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "set-uid", Generation: 2},
		Spec: v1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
				Type: v1beta1.RollingUpdateStrategyType, RollingUpdate: &v1beta1.RollingUpdateDaemonSet{MaxUnavailable: amount("1")},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func given(t testing.TB, nodes int, options ...setOption) *world {
	t.Helper()
	w := &world{t: t}
	w.set = newSet(append([]setOption{image("app:2")}, options...)...)
	for i := range 2 {
		template := w.set.Spec.Template.DeepCopy()
		template.Spec.Containers[0].Image = fmt.Sprintf("app:%d", i+1)
		w.revisions = append(w.revisions, w.revision(*template, int64(i+1)))
	}
	for i := range nodes {
		w.node(fmt.Sprintf("n%d", i+1))
	}
	return w
}

func (w *world) revision(template corev1.PodTemplateSpec, number int64) *appsv1.ControllerRevision {
	r, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), &template, number, 0)
	require.NoError(w.t, err)
	delete(r.Labels, contract.RevisionHashLabel)
	r.Labels[contract.RevisionLabel] = revision.Hash(r)
	return r
}

type nodeOption func(*corev1.Node)

// node adds a ready node or changes the one of that name.
func (w *world) node(name string, change ...nodeOption) *world {
	i := slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == name })
	if i < 0 {
		i = len(w.nodes)
		w.nodes = append(w.nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: gen.UID(name), Labels: map[string]string{"node": name}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	for _, c := range change {
		c(w.nodes[i])
	}
	return w
}

// gone takes nodes away.
func (w *world) gone(names ...string) *world {
	w.nodes = slices.DeleteFunc(w.nodes, func(n *corev1.Node) bool { return slices.Contains(names, n.Name) })
	return w
}

func tainted(effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "busy", Effect: effect}} }
}

// notReady is a node that has not been ready for so long.
func notReady(d time.Duration) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-d))}}
	}
}

// old and updated add pods of either revision to the nodes, such as "n1 n3"; without options they are available.
func (w *world) old(nodes string, options ...gen.PodOption) *world {
	return w.add(w.revisions[0], nodes, options)
}

func (w *world) updated(nodes string, options ...gen.PodOption) *world {
	return w.add(w.revisions[1], nodes, options)
}

func (w *world) add(r *appsv1.ControllerRevision, nodes string, options []gen.PodOption) *world {
	for node := range strings.FieldsSeq(nodes) {
		w.pods = append(w.pods, w.pod(r, node, options...))
	}
	return w
}

// pod is an available pod of the revision, an hour old.
func (w *world) pod(r *appsv1.ControllerRevision, node string, options ...gen.PodOption) *corev1.Pod {
	template, err := revision.Template(r)
	require.NoError(w.t, err)
	all := append([]gen.PodOption{
		gen.FromTemplate(*template), gen.OwnedBy(w.set), gen.Created(now.Add(-time.Hour)), gen.Revision(revision.Hash(r)),
		gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now.Add(-time.Hour)),
		gen.OnNode(node), gen.Ready(now.Add(-time.Hour)),
	}, options...)
	return gen.Pod(fmt.Sprintf("web-%s-%d", node, len(w.pods)), all...)
}

// retryLater lets failed pods of the node wait for their replacement.
func (w *world) retryLater(node string) *world {
	w.retry = map[string]time.Time{node: now.Add(10 * time.Minute)}
	return w
}

func (w *world) snapshot() Snapshot {
	s := Snapshot{
		FeatureGates: w.featureGates, RetryFailedAt: w.retry, HadPod: w.had, UnreadySince: w.unready,
		Snapshot: model.Snapshot[*v1beta1.DaemonSet]{
			Set: w.set, Owner: controllerRef(w.set), Pods: cluster.Snapshot(w.pods), Orphans: cluster.Snapshot(w.orphans), Revisions: w.revisions,
			Now: now, Seed: 1, Refusals: w.refused, Chosen: revision.Choice{Update: w.revisions[1], Current: w.revisions[1]}, PullJobs: w.pulls,
		},
	}
	template := eligibility.Compile(&w.set.Spec.Template, eligibility.ForDaemons)
	for _, n := range w.nodes {
		s.Nodes = append(s.Nodes, Node{n, template.Of(n)})
	}
	return s
}

func controllerRef(set *v1beta1.DaemonSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind))
}

// plan computes twice and requires that both plans are equal and that the snapshot is unchanged.
func (w *world) plan() Plan {
	w.t.Helper()
	s := w.snapshot()
	before := w.set.DeepCopy()
	var pods []*corev1.Pod
	for _, o := range s.Pods {
		pods = append(pods, o.DeepCopy())
	}
	todo, observed := Compute(s), s.Observed()
	for range 2 {
		require.Equal(w.t, todo.String(), Compute(observed).String(), "equal snapshots make equal plans")
	}
	require.Equal(w.t, Status(s, todo, action.Failures{}), Status(observed, todo, action.Failures{}), "a plan changed what was observed")
	require.Equal(w.t, before, w.set, "the set was changed")
	require.Equal(w.t, pods, s.Pods, "a pod was changed")
	return todo
}

func (w *world) status() v1beta1.DaemonSetStatus {
	return Status(w.snapshot(), Compute(w.snapshot()), action.Failures{})
}

// did are the actions of the plan on pods, in words: "create n1 old", "delete n3", "update n2", "hold n2" for one that
// goes to PreparingDelete.
func (w *world) did() []string {
	w.t.Helper()
	did := []string{}
	for _, s := range w.plan().Steps {
		for _, a := range s.Actions {
			o, ok := a.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			node := eligibility.NodeOf(o)
			state, _ := judges.LabelIn(a, contract.LifecycleStateLabel)
			switch _, moved := judges.LabelIn(a, contract.RevisionLabel); {
			case a.Verb == action.Create && o.Labels[contract.RevisionLabel] == revision.Hash(w.revisions[0]):
				did = append(did, "create "+node+" old")
			case a.Verb == action.Create:
				did = append(did, "create "+node)
			case a.Verb == action.Delete:
				did = append(did, "delete "+node)
			case a.Verb == action.UpdateInPlace && moved:
				did = append(did, "update "+node)
			case state == contract.LifecyclePreparingDelete:
				did = append(did, "hold "+node)
			case state != "":
				did = append(did, strings.ToLower(state)+" "+node)
			}
		}
	}
	return did
}

// names are the names of pods that are deleted.
func (w *world) deleted() []string {
	var names []string
	for a := range judges.Actions(w.plan().Steps, "") {
		if a.Verb == action.Delete {
			names = append(names, a.Object.GetName())
		}
	}
	return names
}

// waits are the reasons of the plan's waits.
func (w *world) waits() []string {
	var reasons []string
	for _, wait := range w.plan().Waits {
		reasons = append(reasons, wait.Reason)
	}
	return reasons
}

func amount(v string) *intstr.IntOrString {
	parsed := intstr.Parse(v)
	return &parsed
}

func rolling(change func(*v1beta1.RollingUpdateDaemonSet)) setOption {
	return func(s *v1beta1.DaemonSet) {
		if s.Spec.UpdateStrategy.RollingUpdate == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{}
		}
		change(s.Spec.UpdateStrategy.RollingUpdate)
	}
}

func maxUnavailable(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.MaxUnavailable, r.MaxSurge = amount(v), nil })
}

func maxSurge(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.MaxSurge, r.MaxUnavailable = amount(v), amount("0") })
}

func partition(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Partition = amount(v) })
}

func pausing(v bool) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Paused = &v })
}

func inPlace(r *v1beta1.DaemonSet) {
	rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.RollingUpdateType = v1beta1.InPlaceRollingUpdateType })(r)
}

func reverting(s *v1beta1.DaemonSet) {
	rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.UnselectedNodePolicy = v1beta1.RevertUnselectedNodes })(s)
}

func unready(policy v1beta1.UnreadyNodePolicy) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.UnreadyNodePolicy = policy })
}

// onNodes selects the nodes for the update.
func onNodes(names ...string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) {
		r.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "node", Operator: metav1.LabelSelectorOpIn, Values: names}}}
	})
}

func deleting(s *v1beta1.DaemonSet) {
	s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
}

func image(name string) setOption {
	return func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func minReady(seconds int32) setOption {
	return func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = seconds }
}

func burst(v string) setOption {
	return func(s *v1beta1.DaemonSet) { s.Spec.BurstReplicas = amount(v) }
}

func partitionedScaling(s *v1beta1.DaemonSet) {
	s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
}

// hooked has a preDelete hook that pods carry.
func hooked(s *v1beta1.DaemonSet) {
	s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}}
}

// hookTaken gives new pods what the hook holds them by.
func hookTaken(s *v1beta1.DaemonSet) { s.Spec.Template.Labels["hook"] = "on" }

var (
	hookOn      = gen.Label("hook", "on")
	preparing   = gen.Lifecycle(contract.LifecyclePreparingDelete)
	down        = gen.NotReady(now.Add(-10 * time.Second))
	young       = gen.Ready(now.Add(-2 * time.Second)) // too young for minReadySeconds of 10
	terminating = gen.Change(func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: now} })
	failed      = gen.Phase(corev1.PodFailed)
	unassigned  = gen.Change(func(o *corev1.Pod) {
		node := o.Spec.NodeName
		o.Spec.NodeName = ""
		eligibility.Pin(&o.Spec, node)
	})
)

func created(ago time.Duration) gen.PodOption { return gen.Created(now.Add(-ago)) }
