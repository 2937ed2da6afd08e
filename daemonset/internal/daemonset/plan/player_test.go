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

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/memory"
)

// player plays the plans of DaemonSet "web" in a simulated world, as the controller would on a server, and judges every
// one of them.
type player struct {
	world        *simulate.World
	featureGates FeatureGates
	report       func(done action.Failures) []action.Step
	plan         Plan
	lost         *simulate.LostPods
	known        *memory.Memory
}

// Restart is a new operator.
func (p *player) Restart() {
	p.lost.Restart()
	p.known = &memory.Memory{}
}

// Followed tells the finder what was done to pods.
func (p *player) Followed(results []progress.Outcome) {
	p.lost.Followed(gen.Namespace, "web", results)
}

// Plan reads the snapshot from the view and returns what Compute wants.
func (p *player) Plan(view *simulate.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
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

func (p *player) snapshot(view *simulate.View, set *v1beta1.DaemonSet, now time.Time) (Snapshot, error) {
	s := Snapshot{Snapshot: model.Snapshot[*v1beta1.DaemonSet]{
		Set: set, Owner: controllerRef(set),
		Pods:            simulate.ListLabelled[*corev1.Pod](view, set.UID, contract.RevisionLabel),
		Revisions:       simulate.ListOwned[*appsv1.ControllerRevision](view, set.UID),
		OrphanRevisions: orphanRevisions(view, set),
	}}
	lost, err := p.lost.Find(view, orphans.Search{
		Owner: set, Selector: set.Spec.Selector, Pods: s.Pods, Replicas: &set.Status.DesiredNumberScheduled,
		Counted: set.Status.CurrentNumberScheduled, Observed: set.Status.ObservedGeneration,
	}, now)
	if err != nil {
		return s, err
	}
	s.Pods, s.Orphans = append(s.Pods, lost.Own...), lost.Orphans
	s.Chosen, err = revision.Choose(revision.Input{
		Owner: set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &set.Spec.Template, HashLabel: contract.RevisionLabel,
		DefaultPullPolicy: DefaultPullPolicy, Owned: s.Revisions, Orphans: s.OrphanRevisions, CollisionCount: ptr.Deref(set.Status.CollisionCount, 0),
		Lookup: func(name string) *appsv1.ControllerRevision {
			return simulate.Get[*appsv1.ControllerRevision](view, set.Namespace, name)
		},
	})
	p.recall(&s, view, now)
	return s, err
}

// recall completes the snapshot as the operator does.
func (p *player) recall(s *Snapshot, view *simulate.View, now time.Time) {
	seen := memory.Seen{Set: s.Set, Pods: s.Pods, Nodes: simulate.List[*corev1.Node](view), Now: now, FirstPodsWait: PartitionedScaling(s.Set)}
	if s.Chosen.Update != nil {
		seen.Revision = s.Chosen.Update.Name
	}
	facts := p.known.Recall(seen)
	s.RetryFailedAt, s.HadPod = facts.RetryFailedAt, facts.HadPod
	for i, verdict := range facts.Verdicts {
		s.Nodes = append(s.Nodes, Node{seen.Nodes[i], verdict})
	}
}

func orphanRevisions(view *simulate.View, set *v1beta1.DaemonSet) []*appsv1.ControllerRevision {
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	return slices.DeleteFunc(simulate.List[*appsv1.ControllerRevision](view), func(o *appsv1.ControllerRevision) bool {
		return metav1.GetControllerOfNoCopy(o) != nil || o.DeletionTimestamp != nil || !selector.Matches(labels.Set(o.Labels))
	})
}

// play is a world of so many nodes with DaemonSet "web" of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options simulate.Options, nodes int, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	set := newSet(change...)
	set.Generation = 1
	options.Nodes = nodes
	w := simulate.New(options, set)
	w.AddNodes(nodes)
	p := &player{world: w, featureGates: FeatureGates{EnvFromMetadata: true, Resize: true}, lost: w.LostPods(contract.RevisionLabel)}
	p.Restart()
	watch(w)
	return w, p
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := simulate.Change(w, simulate.UserActor, "", newSet(), func(set *v1beta1.DaemonSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func setIn(v *simulate.View) *v1beta1.DaemonSet {
	return simulate.Get[*v1beta1.DaemonSet](v, gen.Namespace, "web")
}

func present(w *simulate.World) *v1beta1.DaemonSet { return setIn(w.View(nil)) }

// answers lets a user's controller answer the hooks of the set, each some time after it was asked.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that every node that should run a pod has one, available and, as far as partition and selector let
// it, at the template's revision; that no other has one; and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}
