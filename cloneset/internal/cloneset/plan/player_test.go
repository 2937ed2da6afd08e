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
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/frame/orphans"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// player plays the plans of CloneSet "web" in a simulated world, as the controller would on a server,
// and judges every one of them.
type player struct {
	world        *simulate.World
	featureGates FeatureGates
	report       func(done action.Failures) []action.Step
	plan         Plan
	lost         *simulate.LostPods
}

func newPlayer(w *simulate.World) *player {
	return &player{world: w, lost: w.LostPods(contract.InstanceIDLabel)}
}

// Restart is a new operator.
func (p *player) Restart() { p.lost.Restart() }

// Followed tells the finder what was done to pods.
func (p *player) Followed(results []progress.Outcome) {
	p.lost.Followed(gen.Namespace, "web", results)
}

// Plan reads the snapshot from the view and returns what Compute wants.
func (p *player) Plan(view *simulate.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	p.report, p.plan = nil, Plan{}
	set := simulate.Get[*v1beta1.CloneSet](view, gen.Namespace, "web")
	if set == nil {
		return nil, 0
	}
	s, err := p.snapshot(view, set, now)
	if err != nil {
		p.world.Violate("no snapshot: %v", err)
		return nil, 0
	}
	s.Now, s.Seed, s.FeatureGates = now, seed, p.featureGates
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

func (p *player) snapshot(view *simulate.View, set *v1beta1.CloneSet, now time.Time) (Snapshot, error) {
	s := Snapshot{Claims: simulate.ListOwned[*corev1.PersistentVolumeClaim](view, set.UID), Snapshot: model.Snapshot[*v1beta1.CloneSet]{
		Set:        set,
		Owner:      controllerRef(set),
		Pods:       simulate.ListLabelled[*corev1.Pod](view, set.UID, contract.InstanceIDLabel),
		Revisions:  simulate.ListOwned[*appsv1.ControllerRevision](view, set.UID),
		NodeLabels: func(string) map[string]string { return nil },
		Claim: func(name string) *corev1.PersistentVolumeClaim {
			return simulate.Get[*corev1.PersistentVolumeClaim](view, set.Namespace, name)
		},
		OrphanRevisions: orphanRevisions(view, set),
	}}
	lost, err := p.lost.Find(view, orphans.Search{
		Owner: set, Selector: set.Spec.Selector, Pods: s.Pods, Replicas: set.Spec.Replicas,
		Counted: set.Status.Replicas, Observed: set.Status.ObservedGeneration,
	}, now)
	if err != nil {
		return s, err
	}
	s.Pods, s.Orphans, s.TakenNames = append(s.Pods, lost.Own...), lost.Orphans, lost.Taken
	claimsHash, err := revision.ClaimsHash(set.Spec.VolumeClaimTemplates)
	if err != nil {
		return s, err
	}
	s.Chosen, err = revision.Choose(revision.Input{
		Owner: set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &set.Spec.Template,
		DefaultPullPolicy: DefaultPullPolicy, ClaimsHash: &claimsHash, Owned: s.Revisions, Orphans: s.OrphanRevisions,
		Current: set.Status.CurrentRevision, CollisionCount: ptr.Deref(set.Status.CollisionCount, 0),
		Lookup: func(name string) *appsv1.ControllerRevision {
			return simulate.Get[*appsv1.ControllerRevision](view, set.Namespace, name)
		},
	})
	return s, err
}

func orphanRevisions(view *simulate.View, set *v1beta1.CloneSet) []*appsv1.ControllerRevision {
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	return slices.DeleteFunc(simulate.List[*appsv1.ControllerRevision](view), func(o *appsv1.ControllerRevision) bool {
		return metav1.GetControllerOfNoCopy(o) != nil || o.DeletionTimestamp != nil || !selector.Matches(labels.Set(o.Labels))
	})
}

// play is a world with CloneSet "web" of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options simulate.Options, replicas int32, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	w := simulate.New(options, newSet(replicas, change...))
	p := newPlayer(w)
	p.featureGates = FeatureGates{EnvFromMetadata: true, Resize: true}
	watch(w)
	return w, p
}

func newSet(replicas int32, change ...setOption) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "set-uid"},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.ReCreate, MaxUnavailable: amount("1"),
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := simulate.Change(w, simulate.UserActor, "", newSet(0), func(set *v1beta1.CloneSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func present(w *simulate.World) *v1beta1.CloneSet {
	return simulate.Get[*v1beta1.CloneSet](w.View(nil), gen.Namespace, "web")
}

func activePods(w *simulate.World) []*corev1.Pod { return w.View(nil).Active("set-uid") }

func image(name string) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Replicas = &n }
}

func resumed() setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Paused = false })
}

func grace(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

// hookTaken puts label hook=on into the template, so that new pods have taken the hooks of hooked.
func hookTaken() setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Labels["hook"] = "on" }
}

// answers lets a user's controller answer the hooks of the set.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that all pods are available and, as far as the partition lets them, at the
// template's revision, and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}

// nameOne names the oldest pod in podsToDelete.
func nameOne(w *simulate.World) setOption {
	return func(s *v1beta1.CloneSet) {
		if pods := activePods(w); len(pods) > 0 {
			s.Spec.ScaleStrategy.PodsToDelete = append(s.Spec.ScaleStrategy.PodsToDelete, pods[0].Name)
		}
	}
}
