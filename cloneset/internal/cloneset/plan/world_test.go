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

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a CloneSet "web" with two revisions, the older with image app:1 and the newer with
// app:2, and pods of either.
type world struct {
	t            testing.TB
	set          *v1beta1.CloneSet
	pods         []*corev1.Pod
	claims       []*corev1.PersistentVolumeClaim
	revisions    [2]*appsv1.ControllerRevision
	featureGates FeatureGates
	rolled       bool // the older revision is wanted again
	unsaved      bool // the newer revision is not written yet
	pulls        predownload.Jobs
	retry        time.Time
}

type setOption func(*v1beta1.CloneSet)

func given(t testing.TB, replicas int32, options ...setOption) *world {
	t.Helper()
	w := &world{t: t, featureGates: FeatureGates{EnvFromMetadata: true, Resize: true}}
	w.set = &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "set-uid", Generation: 2},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:2")),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.ReCreate},
			},
		},
	}
	maxUnavailable("1")(w.set)
	for _, o := range options {
		o(w.set)
	}
	for i := range w.revisions {
		template := w.set.Spec.Template.DeepCopy()
		template.Spec.Containers[0].Image = fmt.Sprintf("app:%d", i+1)
		r, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), template, int64(i+1), 0)
		require.NoError(t, err)
		w.revisions[i] = r
	}
	return w
}

func rolling(change func(*v1beta1.RollingUpdateCloneSetStrategy)) setOption {
	return func(s *v1beta1.CloneSet) { change(s.Spec.UpdateStrategy.RollingUpdate) }
}

func maxUnavailable(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.MaxUnavailable = amount(v) })
}

func maxSurge(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.MaxSurge = amount(v) })
}

func partition(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Partition = amount(v) })
}

func policy(v v1beta1.PodUpdatePolicy) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.PodUpdatePolicy = v })
}

func paused() setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Paused = true })
}

func scaleUnavailable(v string) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = amount(v) }
}

func amount(v string) *intstr.IntOrString {
	parsed := intstr.Parse(v)
	return &parsed
}

// old and updated add n pods of either revision; without options they are available.
func (w *world) old(n int, options ...gen.PodOption) *world { return w.add(0, "old", n, options) }

func (w *world) updated(n int, options ...gen.PodOption) *world {
	return w.add(1, "new", n, options)
}

func (w *world) add(r int, prefix string, n int, options []gen.PodOption) *world {
	template, err := revision.Template(w.revisions[r])
	require.NoError(w.t, err)
	for range n {
		name := fmt.Sprintf("web-%s%d", prefix, len(w.pods))
		all := append([]gen.PodOption{
			gen.FromTemplate(*template), gen.Namespaced("default"), gen.OwnedBy(w.set), gen.Created(now.Add(-time.Hour)),
			gen.Revision(w.revisions[r].Name), gen.Label(contract.TemplateHashLabel, podstate.ShortHash(w.revisions[r].Name)),
			gen.Label(contract.InstanceIDLabel, strings.TrimPrefix(name, "web-")), gen.Lifecycle(contract.LifecycleNormal),
			gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now.Add(-time.Hour)),
			gen.OnNode("node-1"), gen.Ready(now.Add(-time.Hour)),
		}, options...)
		w.pods = append(w.pods, gen.Pod(name, all...))
	}
	return w
}

func (w *world) snapshot() Snapshot {
	s := Snapshot{Claims: controlledBy(w.set, w.claims), RetryFailedAt: w.retry, FeatureGates: w.featureGates, Snapshot: model.Snapshot[*v1beta1.CloneSet]{
		Set: w.set, Owner: controllerRef(w.set), Pods: cluster.Snapshot(w.pods), Revisions: w.revisions[:], Now: now, Seed: 7,
		PullJobs:   w.pulls,
		Claim:      func(name string) *corev1.PersistentVolumeClaim { return claimNamed(w.claims, name) },
		Chosen:     revision.Choice{Update: w.revisions[1], Current: w.revisions[0], Create: w.unsaved},
		NodeLabels: func(string) map[string]string { return nil },
	}}
	if w.rolled {
		s.Chosen = revision.Choice{Update: w.revisions[0], Current: w.revisions[0]}
	}
	return s
}

func controllerRef(set *v1beta1.CloneSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind))
}

func controlledBy(set *v1beta1.CloneSet, claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(claims), func(c *corev1.PersistentVolumeClaim) bool { return !metav1.IsControlledBy(c, set) })
}

func claimNamed(claims []*corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaim {
	for _, c := range claims {
		if c.Name == name {
			return c
		}
	}
	return nil
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

// outcome is a plan in numbers.
type outcome struct {
	createOld, createNew, deleteOld, deleteNew, updated int
}

func (w *world) outcome() outcome {
	w.t.Helper()
	var o outcome
	todo := w.plan()
	require.NoError(w.t, todo.Err)
	for _, s := range todo.Steps {
		for _, a := range s.Actions {
			old := podstate.ShortHash(a.Object.GetLabels()[contract.RevisionLabel]) == podstate.ShortHash(w.revisions[0].Name)
			switch {
			case a.Verb == action.Create && old:
				o.createOld++
			case a.Verb == action.Create:
				o.createNew++
			case a.Verb == action.Delete && old:
				o.deleteOld++
			case a.Verb == action.Delete:
				o.deleteNew++
			case a.Verb == action.UpdateInPlace:
				o.updated++
			}
		}
	}
	return o
}

func (w *world) waits() []string {
	var reasons []string
	for _, wait := range w.plan().Waits {
		reasons = append(reasons, wait.Reason)
	}
	return reasons
}

var unready = gen.NotReady(now.Add(-time.Minute))

func revisionOf(t *testing.T, w *world, template corev1.PodTemplateSpec) *appsv1.ControllerRevision {
	t.Helper()
	r, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), &template, 2, 0)
	require.NoError(t, err)
	return r
}

func short(r *appsv1.ControllerRevision) string { return podstate.ShortHash(r.Name) }
