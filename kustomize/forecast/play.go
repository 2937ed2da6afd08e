package forecast

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	budget "github.com/flotilla-project/flotilla/budget/whatif"

	spread "github.com/flotilla-project/flotilla/spread/whatif"

	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// still is the time without a change of a pod after which a rollout counts as stuck. The pauses of its spec are added.
const still = 30 * time.Minute

// Edit is a change of a workload, with faults that happen at the same time.
type Edit struct {
	// To is the workload as the edit leaves it; nil is no edit.
	To *unstructured.Unstructured
	// Crash are images that exit soon after each start.
	Crash []string
	// LoseNodes are nodes that stop to answer right after the edit, Evict pods that are evicted.
	LoseNodes, Evict []string
	// Times replaces those that the pods show. Optional.
	Times *Times
	// Shown is called with the workload and its pods after each change. Optional.
	Shown func(*workload.Set, []*corev1.Pod, time.Time)
}

// player plays an edit of a scene.
type player struct {
	scene *Scene
	edit  Edit
	world *nodes.World
	times Times
	run   *operator.Operator
	key   types.NamespacedName
	seen  *observer
	last  time.Time // when a pod last changed
	spare *budget.Budgets
	// spreads put pods into the subsets of WorkloadSpreads.
	spreads *spread.Spreads
	uids    map[types.UID]bool // of the pods before the edit
}

// Play plays an edit of the scene until nothing is left to do. It fails if the scene cannot be read, or ctx ends.
func Play(ctx context.Context, scene *Scene, edit Edit) (*Report, error) {
	p := &player{
		scene: scene,
		edit:  edit,
		times: Learn(scene.Pods),
		key:   types.NamespacedName{Namespace: scene.Set.GetNamespace(), Name: scene.Set.GetName()},
	}
	if edit.Times != nil {
		p.times = *edit.Times
	}
	before, err := p.begin() //nolint:contextcheck // a simulated cluster waits for nothing
	if err != nil {
		return nil, err
	}
	if err := p.change(before); err != nil { //nolint:contextcheck // the same
		return nil, err
	}
	_, err = p.run.PlayWhile(func() bool { return ctx.Err() == nil && p.world.Now().Sub(p.last) < still+p.pause() })
	if err != nil {
		return nil, fmt.Errorf("play %s/%s: %w", scene.Kind.Short(), p.key.Name, err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p.forecast(before) //nolint:contextcheck // the same
}

// begin makes the world as the scene has it, with the operator of the workload.
func (p *player) begin() (before action.Object, err error) {
	kind, err := p.scene.played()
	if err != nil {
		return nil, err
	}
	objects, err := p.scene.objects()
	if err != nil {
		return nil, err
	}
	s := newScheduler(p.scene.Others, p.scene.Volumes)
	quotas := newQuotas(p.scene.Quotas)
	p.spare, p.spreads = budget.New(), spread.New()
	options := cluster.Options{
		Calm:          true,
		Seed:          uint64(p.scene.Now.UnixNano()),
		Begin:         p.scene.Now,
		Takes:         p.times.Of,
		Schedule:      s.schedule,
		Room:          s.room,
		Images:        p.images(),
		JudgesResizes: p.scene.judgesResizes(),
		Admission: func(w *cluster.World, e cluster.Event) error {
			if err := quotas.admit(e); err != nil {
				return err
			}
			return p.spare.Admit(w, e)
		},
	}
	if len(p.scene.Spreads) > 0 { // pods with a missing spread would be released from it
		options.Mutate = p.spreads.Mutate
	}
	p.world = nodes.New(options, objects...)
	for _, pod := range p.world.Pods() {
		s.put(pod)
	}
	// They are the first to see an event, so that they see all events in their order.
	p.world.OnEvent(s.see)
	p.world.OnEvent(quotas.see)
	if p.scene.hasAgents() {
		p.world.NodeAgents()
	}
	p.last = p.world.Now()
	p.uids = map[types.UID]bool{}
	for _, pod := range p.scene.Pods {
		p.uids[pod.UID] = true
	}
	p.world.OnEvent(func(e cluster.Event) {
		if e.Kind == "Pod" {
			p.last = e.Time
		}
	})
	p.run = operator.New(p.world.Cluster(), kind.Planner(p.world.Cluster(), p.key), operator.Settings{Coalesce: true})
	answerHooks(p.world, p.scene)
	expandClaims(p.world)
	return p.set(), nil
}

// images are those that cannot be pulled, and those whose containers crash.
func (p *player) images() map[string]cluster.Image {
	images := map[string]cluster.Image{}
	for _, image := range missing(p.scene.Pods) {
		images[image] = cluster.Image{PullError: true}
	}
	for _, image := range p.edit.Crash {
		images[image] = cluster.Image{CrashLoop: true}
	}
	return images
}

// set is the workload of the world.
func (p *player) set() action.Object {
	return p.world.View(nil).Object(p.scene.Kind.Name, p.key)
}

// change makes the edit and lets the faults happen.
func (p *player) change(before action.Object) error {
	p.spare.Watch(p.world.Cluster())
	if len(p.scene.Spreads) > 0 {
		p.spreads.Watch(p.world.Cluster())
	}
	p.seen = observe(p.world, p.scene, before)
	if p.edit.Shown != nil {
		p.world.OnEvent(func(e cluster.Event) { p.show(e) })
	}
	if p.edit.To != nil {
		edited, err := p.scene.typed(p.edit.To)
		if err != nil {
			return err
		}
		if err := p.world.Edit(cluster.UserActor, "", before, func(o action.Object) { copySpec(edited, o) }); err != nil {
			return fmt.Errorf("edit %s/%s: %w", p.scene.Kind.Short(), p.key.Name, err)
		}
	}
	for _, node := range p.edit.LoseNodes {
		p.loseNode(node)
	}
	for _, pod := range p.edit.Evict {
		p.evict(pod)
	}
	return nil
}

// loseNode stops a node. Its pods are deleted when their tolerations end, and stay terminating: no kubelet ends them.
func (p *player) loseNode(node string) {
	p.world.FailNode(node)
	for _, pod := range p.world.Pods() {
		if pod.Spec.NodeName != node {
			continue
		}
		patience, ends := tolerates(pod)
		if !ends {
			continue
		}
		key, uid := cluster.KeyOf(pod), pod.UID
		p.world.After(patience, func() {
			if pod := p.world.Pod(key, uid); pod != nil && pod.DeletionTimestamp == nil {
				_ = p.world.Delete(cluster.NodeActor, pod) // a refusal is counted by the budget
			}
		})
	}
}

// unreachable is how long pods stay on a node that does not answer, unless their tolerations have another time. The API server
// gives each pod such a toleration.
const unreachable = 5 * time.Minute

// tolerates returns how long a pod stays on a node that does not answer; it may stay forever.
func tolerates(pod *corev1.Pod) (patience time.Duration, ends bool) {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.Key != corev1.TaintNodeUnreachable && t.Key != "" || t.Effect != corev1.TaintEffectNoExecute && t.Effect != "" {
			continue
		}
		if t.TolerationSeconds == nil {
			return 0, false
		}
		return time.Duration(*t.TolerationSeconds) * time.Second, true
	}
	return unreachable, true
}

// evict evicts a pod as a drain does: again and again until the budgets let it go.
func (p *player) evict(name string) {
	pod := cluster.Get[*corev1.Pod](p.world.View(nil), p.key.Namespace, name)
	if pod == nil || pod.DeletionTimestamp != nil || !p.uids[pod.UID] {
		return
	}
	if p.seen.allowsEviction(pod) && p.world.Delete(cluster.UserActor, pod) == nil {
		return
	}
	p.world.After(5*time.Second, func() { p.evict(name) })
}

// stay names the pods that were to be evicted and are still there.
func (p *player) stay() []string {
	var all []string
	for _, name := range p.edit.Evict {
		if pod := cluster.Get[*corev1.Pod](p.world.View(nil), p.key.Namespace, name); pod != nil && pod.DeletionTimestamp == nil && p.uids[pod.UID] {
			all = append(all, fmt.Sprintf("pod %s is not evicted within %s: a budget refuses it", name, still))
		}
	}
	return all
}

// pause is the longest time for which the spec has the operator do nothing.
func (p *player) pause() time.Duration { return time.Duration(MinReadySeconds(p.set())) * time.Second }

// show shows the workload after a change of it or of its pods.
func (p *player) show(e cluster.Event) {
	if e.Kind != "Pod" && e.Kind != p.scene.Kind.Name {
		return
	}
	set, err := p.scene.untyped(p.set())
	if err == nil {
		p.edit.Shown(set, p.world.View(nil).Owned(set.UID), p.world.Now())
	}
}

// forecast returns the report of the events so far.
func (p *player) forecast(before action.Object) (*Report, error) {
	set, err := p.scene.untyped(p.set())
	if err != nil {
		return nil, err
	}
	f := &Report{
		Kind:      p.scene.Kind.Name,
		Namespace: p.key.Namespace,
		Name:      p.key.Name,
		Times: UsedTimes{
			Creating: seconds(p.times.Creating),
			Starting: seconds(p.times.Starting),
			Learnt:   p.times.Learnt,
		},
	}
	judged := progress.Judge(set)
	f.Phase, f.Message = judged.Phase, judged.Message
	if f.Phase == progress.Progressing { // and yet nothing more happens
		f.Phase = progress.Failed
	}
	if f.Phase == progress.Failed {
		f.Message += unscheduled(p.world.View(nil).Owned(set.UID))
	}
	if p.edit.To != nil {
		edited, err := p.scene.typed(p.edit.To)
		if err != nil {
			return nil, err
		}
		kind, err := p.scene.played()
		if err != nil {
			return nil, err
		}
		f.Answers = kind.Warnings(before, edited)
	}
	p.seen.report(f)
	for _, s := range p.spare.States() {
		if s.Lowest.Total == 0 { // it covers other workloads
			continue
		}
		f.Budgets = append(f.Budgets, Budget{
			Kind:    "PodUnavailableBudget",
			Name:    s.Budget.Name,
			Desired: int(s.Lowest.Desired),
			Lowest:  int(s.Lowest.Available),
			Refused: s.Refused,
		})
	}
	f.Subsets = p.subsets()
	f.Assumed = append(p.scene.shared(), p.stay()...)
	return f, nil
}
