package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a StatefulSet "web" with two revisions, the older with image app:1 and the newer with
// app:2, and pods of either. Parallel unless an option says otherwise.
type world struct {
	t               testing.TB
	set             *v1beta1.StatefulSet
	pods            []*corev1.Pod
	orphans         []*corev1.Pod
	claims          map[string]*corev1.PersistentVolumeClaim
	revisions       []*appsv1.ControllerRevision
	orphanRevisions []*appsv1.ControllerRevision
	expandable      map[string]bool
	classesErr      error
	featureGates    FeatureGates
	pulls           predownload.Jobs
	unsaved         bool // the newer revision is not written yet
	retry           map[string]time.Time
}

type setOption func(*v1beta1.StatefulSet)

func allFeatureGates() FeatureGates {
	return FeatureGates{StartOrdinal: true, PodIndexLabel: true, AutoDeletePVC: true, AutoResizePVC: true, EnvFromMetadata: true, Resize: true}
}

// newSet is StatefulSet "web" of image app:1, Parallel, with maxUnavailable 1.
func newSet(replicas int32, change ...setOption) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "set-uid", Generation: 2},
		Spec: v1beta1.StatefulSetSpec{
			Replicas:            &replicas,
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:            gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			ServiceName:         "web-service",
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{MaxUnavailable: amount("1")},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func given(t testing.TB, replicas int32, options ...setOption) *world {
	t.Helper()
	w := &world{t: t, featureGates: allFeatureGates(), claims: map[string]*corev1.PersistentVolumeClaim{}}
	w.set = newSet(replicas, append([]setOption{image("app:2")}, options...)...)
	for i := range 2 {
		template := w.set.Spec.Template.DeepCopy()
		template.Spec.Containers[0].Image = fmt.Sprintf("app:%d", i+1)
		w.revisions = append(w.revisions, w.revision(*template, int64(i+1)))
	}
	return w
}

// withFeatureGates changes feature gates.
func (w *world) withFeatureGates(change func(*FeatureGates)) *world {
	change(&w.featureGates)
	return w
}

// edited changes the set.
func (w *world) edited(change setOption) *world {
	change(w.set)
	return w
}

// changed makes the newer revision of the present template.
func (w *world) changed() *world {
	w.revisions[1] = w.revision(w.set.Spec.Template, 2)
	return w
}

func (w *world) revision(template corev1.PodTemplateSpec, number int64) *appsv1.ControllerRevision {
	r, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), &template, number, 0)
	require.NoError(w.t, err)
	return r
}

// old and updated add pods of either revision with the ordinals; without options they are available.
func (w *world) old(ordinals []int32, options ...gen.PodOption) *world {
	return w.add(w.revisions[0], ordinals, options)
}

func (w *world) updated(ordinals []int32, options ...gen.PodOption) *world {
	return w.add(w.revisions[1], ordinals, options)
}

func (w *world) add(r *appsv1.ControllerRevision, ordinals []int32, options []gen.PodOption) *world {
	for _, ordinal := range ordinals {
		w.pods = append(w.pods, w.pod(r, ordinal, options...))
	}
	return w
}

// pod is an available pod of the revision.
func (w *world) pod(r *appsv1.ControllerRevision, ordinal int32, options ...gen.PodOption) *corev1.Pod {
	template, err := revision.Template(r)
	require.NoError(w.t, err)
	name := podName("web", ordinal)
	all := append([]gen.PodOption{
		gen.FromTemplate(*template), gen.OwnedBy(w.set), gen.Created(now.Add(-time.Hour)), gen.Revision(r.Name),
		gen.Label(appsv1.StatefulSetPodNameLabel, name), gen.Label(appsv1.PodIndexLabel, name[len("web-"):]),
		gen.Lifecycle(contract.LifecycleNormal), gen.ReadinessGate(contract.InPlaceUpdateReady),
		gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now.Add(-time.Hour)),
		gen.OnNode("node-1"), gen.Ready(now.Add(-time.Hour)),
		gen.Change(func(o *corev1.Pod) {
			for i := range w.set.Spec.VolumeClaimTemplates {
				t := &w.set.Spec.VolumeClaimTemplates[i]
				newpod.MountClaims(o, newpod.Mount{Volume: t.Name, Claim: claimName(t, name)})
				if w.claims[claimName(t, name)] == nil {
					w.claim(claimName(t, name), func(c *corev1.PersistentVolumeClaim) { c.Spec = *t.Spec.DeepCopy() })
				}
			}
		}),
	}, options...)
	return gen.Pod(name, all...)
}

// claim adds a bound claim of 1Gi.
func (w *world) claim(name string, change ...gen.ClaimOption) *world {
	claim := gen.Claim(name, "1Gi", change...)
	claim.Namespace, claim.UID = gen.Namespace, gen.UID(name)
	if claim.Status.Phase == "" {
		claim.Status.Phase = corev1.ClaimBound
	}
	if claim.Status.Capacity == nil && claim.Status.Phase == corev1.ClaimBound {
		claim.Status.Capacity = claim.Spec.Resources.Requests
	}
	w.claims[name] = &claim
	return w
}

func (w *world) snapshot() Snapshot {
	s := Snapshot{RetryFailedAt: w.retry, Claims: w.setsClaims(), FeatureGates: w.featureGates, Expandable: w.expandable, ClassesErr: w.classesErr, Snapshot: model.Snapshot[*v1beta1.StatefulSet]{
		Set: w.set, Owner: controllerRef(w.set), Pods: cluster.Snapshot(w.pods), Orphans: cluster.Snapshot(w.orphans), Revisions: w.revisions, OrphanRevisions: w.orphanRevisions, Now: now,
		Claim:    func(name string) *corev1.PersistentVolumeClaim { return w.claims[name] },
		Chosen:   revision.Choice{Update: w.revisions[1], Current: w.revisions[0], Create: w.unsaved},
		PullJobs: w.pulls,
	}}
	return s
}

// setsClaims are the claims that the set owns, and those that are deleted with its ordinals.
func (w *world) setsClaims() []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if c := w.claims[name]; isOwner(c, w.set.UID) || c.Annotations[v1beta1.DeleteWhenScaledAnnotation] == string(w.set.UID) {
			claims = append(claims, c)
		}
	}
	return claims
}

func controllerRef(set *v1beta1.StatefulSet) metav1.OwnerReference {
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

func (w *world) status() v1beta1.StatefulSetStatus {
	return Status(w.snapshot(), Compute(w.snapshot()), action.Failures{})
}

// did are the actions of the plan on pods, in words: "create 0 old", "delete 3", "update 2". Those
// that only mark a pod are left out.
func (w *world) did() []string {
	w.t.Helper()
	did := []string{}
	for _, s := range w.plan().Steps {
		for _, a := range s.Actions {
			o, ok := a.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			ordinal, _ := indexOf("web", o.Name)
			switch _, moved := judges.LabelIn(a, contract.RevisionLabel); {
			case a.Verb == action.Create && podstate.ShortHash(o.Labels[contract.RevisionLabel]) == revision.Hash(w.revisions[0]):
				did = append(did, "create "+ordinal+" old")
			case a.Verb == action.Create:
				did = append(did, "create "+ordinal)
			case a.Verb == action.Delete:
				did = append(did, "delete "+ordinal)
			case a.Verb == action.UpdateInPlace && moved:
				did = append(did, "update "+ordinal)
			}
		}
	}
	return did
}

// waits are the reasons and objects of the plan's waits.
func (w *world) waits() []string {
	var reasons []string
	for _, wait := range w.plan().Waits {
		reasons = append(reasons, wait.Reason+" "+wait.Object)
	}
	return reasons
}

// span is the ordinals from first to last.
func span(first, last int32) []int32 {
	var all []int32
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func at(ordinals ...int32) []int32 { return ordinals }

func amount(v string) *intstr.IntOrString {
	parsed := intstr.Parse(v)
	return &parsed
}

var unready = gen.NotReady(now.Add(-time.Minute))

// terminating begins the deletion of a pod that goes on running for a while.
var terminating = gen.Change(func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: now} })
