package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/frame/orphans"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// player plays the plans of StatefulSet "web" in a simulated world, as the controller would on a
// server, and judges every one of them.
type player struct {
	world        *simulate.World
	featureGates FeatureGates
	expandable   map[string]bool
	offline      bool // file systems grow when they are mounted the next time
	never        bool // not even then
	report       func(done action.Failures) []action.Step
	plan         Plan
	lost         *simulate.LostPods
}

// Restart is a new operator.
func (p *player) Restart() { p.lost.Restart() }

// Followed tells the finder what was done to pods.
func (p *player) Followed(results []progress.Outcome) {
	p.lost.Followed(gen.Namespace, "web", results)
}

// Plan reads the snapshot from the view and returns what Compute wants.
func (p *player) Plan(view *simulate.View, now time.Time, _ uint64) ([]action.Step, time.Duration) {
	p.report, p.plan = nil, Plan{}
	set := setIn(view)
	if set == nil {
		return nil, 0
	}
	s, err := p.snapshot(view, set, now)
	if err != nil {
		p.world.Violate("no snapshot: %v", err)
		return nil, 0
	}
	s.Now, s.FeatureGates, s.Expandable = now, p.featureGates, p.expandable
	s.Refusals = view.Refusals(set, s.Pods, set.Spec.MinReadySeconds)
	todo := Compute(s)
	p.world.ApplyJudges(todo.Steps, todo.String(), planJudges(s, todo)...)
	p.plan = todo
	p.report = func(done action.Failures) []action.Step {
		return []action.Step{simulate.StatusStep(set, Status(s, todo, done.WithDeferred(todo.Deferred)))}
	}
	return todo.Steps, todo.RequeueAfter
}

// Notices are what the last plan tells users.
func (p *player) Notices(statusWritten bool) []action.Notice {
	return p.plan.NoticesToRecord(statusWritten)
}

// Report writes the status that follows from the last plan.
func (p *player) Report(done action.Failures) []action.Step {
	if p.report == nil {
		return nil
	}
	return p.report(done)
}

func (p *player) snapshot(view *simulate.View, set *v1beta1.StatefulSet, now time.Time) (Snapshot, error) {
	s := Snapshot{Snapshot: model.Snapshot[*v1beta1.StatefulSet]{
		Set:       set,
		Owner:     controllerRef(set),
		Pods:      simulate.ListLabelled[*corev1.Pod](view, set.UID, appsv1.StatefulSetPodNameLabel),
		Revisions: simulate.ListOwned[*appsv1.ControllerRevision](view, set.UID),
		Claim: func(name string) *corev1.PersistentVolumeClaim {
			return simulate.Get[*corev1.PersistentVolumeClaim](view, set.Namespace, name)
		},
		OrphanRevisions: orphanRevisions(view, set),
	}}
	lost, err := p.lost.Find(view, orphans.Search{
		Owner: set, Selector: set.Spec.Selector, Pods: s.Pods, Replicas: set.Spec.Replicas,
		Wanted:  func(o *corev1.Pod) bool { return IsMember(set, o.Name) },
		Counted: set.Status.Replicas, Observed: set.Status.ObservedGeneration,
	}, now)
	if err != nil {
		return s, err
	}
	s.Pods, s.Orphans = append(s.Pods, lost.Own...), lost.Orphans
	s.Chosen, err = revision.Choose(revision.Input{
		Owner: set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &set.Spec.Template,
		DefaultPullPolicy: DefaultPullPolicy, Owned: s.Revisions, Orphans: s.OrphanRevisions,
		Current: set.Status.CurrentRevision, CollisionCount: ptr.Deref(set.Status.CollisionCount, 0),
		Lookup: func(name string) *appsv1.ControllerRevision {
			return simulate.Get[*appsv1.ControllerRevision](view, set.Namespace, name)
		},
	})
	return s, err
}

func orphanRevisions(view *simulate.View, set *v1beta1.StatefulSet) []*appsv1.ControllerRevision {
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	return slices.DeleteFunc(simulate.List[*appsv1.ControllerRevision](view), func(o *appsv1.ControllerRevision) bool {
		return metav1.GetControllerOfNoCopy(o) != nil || o.DeletionTimestamp != nil || !selector.Matches(labels.Set(o.Labels))
	})
}

// play is a world with StatefulSet "web" of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options simulate.Options, replicas int32, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	set := newSet(replicas, change...)
	set.Generation = 1
	w := simulate.New(options, set)
	p := &player{world: w, featureGates: allFeatureGates(), expandable: map[string]bool{"big": true, "fixed": false}, lost: w.LostPods(appsv1.StatefulSetPodNameLabel)}
	watch(w)
	p.growVolumes()
	return w, p
}

// growVolumes lets the storage of the world follow claims that ask for more, after a while.
func (p *player) growVolumes() {
	p.world.OnEvent(func(w *simulate.World, e simulate.Event) {
		switch o := e.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			if e.Actor == simulate.OperatorActor && e.Type == simulate.Modified && !hasRequestedSize(o) && !awaitsMount(o) {
				w.After(5*time.Second, func() { p.grow(o) })
			}
		case *corev1.Pod:
			if e.Subresource == "binding" && !p.never { // a kubelet mounts volumes before it starts containers
				w.After(0, func() { mount(w, o) })
			}
		}
	})
}

// driver grows volumes. A volume that grows under a pod is a change of the world: where only a mount grows the
// file system, it lets another pod be made for a set that nobody has edited.
const driver = "driver"

func (p *player) grow(claim *corev1.PersistentVolumeClaim) {
	_ = simulate.Change(p.world, driver, "status", claim, func(c *corev1.PersistentVolumeClaim) {
		if p.offline {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
			return
		}
		c.Status.Capacity = c.Spec.Resources.Requests
	})
}

// mount grows the file systems of the pod that await it.
func mount(w *simulate.World, o *corev1.Pod) {
	for _, v := range o.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := simulate.Get[*corev1.PersistentVolumeClaim](w.View(nil), o.Namespace, v.PersistentVolumeClaim.ClaimName)
		if claim != nil && awaitsMount(claim) {
			_ = simulate.Change(w, simulate.BinderActor, "status", claim, func(c *corev1.PersistentVolumeClaim) {
				c.Status.Capacity, c.Status.Conditions = c.Spec.Resources.Requests, nil
			})
		}
	}
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := simulate.Change(w, simulate.UserActor, "", newSet(0), func(set *v1beta1.StatefulSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func setIn(v *simulate.View) *v1beta1.StatefulSet {
	return simulate.Get[*v1beta1.StatefulSet](v, gen.Namespace, "web")
}

func present(w *simulate.World) *v1beta1.StatefulSet { return setIn(w.View(nil)) }

func activePods(w *simulate.World) []*corev1.Pod { return w.View(nil).Active("set-uid") }

func podOf(w *simulate.World, ordinal int32) *corev1.Pod {
	return simulate.Get[*corev1.Pod](w.View(nil), gen.Namespace, podName("web", ordinal))
}

// running are the ordinals of the active pods, in order.
func running(w *simulate.World) []int32 {
	all := []int32{}
	for _, o := range activePods(w) {
		if ordinal, ok := ordinalOf("web", o.Name); ok {
			all = append(all, ordinal)
		}
	}
	slices.Sort(all)
	return all
}

// answers lets a user's controller answer the hooks of the set, each some time after it was asked.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that the pods of all live ordinals are available and, as far as the partition lets
// them, at the template's revision, and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}
