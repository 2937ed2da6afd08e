package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// builtIn is a small model of the DaemonSet controller of Kubernetes: its rules as its documentation and its behaviour
// give them, without history, status and back-off.
type builtIn struct{ made int }

// Plan gives nodes their pods, and updates pods once every node has one and no more.
func (b *builtIn) Plan(view *operator.View, now time.Time, _ uint64) ([]action.Step, time.Duration) {
	set := setIn(view.View)
	if set == nil {
		return nil, 0
	}
	m := &builtInPass{builtIn: b, set: set, revision: revisionOf(&set.Spec.Template), pods: map[string][]podstate.State{}}
	wake := time.Duration(0)
	for _, o := range cluster.ListOwned[*corev1.Pod](view.View, set.UID) {
		s := podstate.Of(o, now, set.Spec.MinReadySeconds)
		if s.Terminating && (o.Status.Phase == corev1.PodFailed || o.Status.Phase == corev1.PodSucceeded) {
			continue
		}
		m.pods[eligibility.NodeOf(o)] = append(m.pods[eligibility.NodeOf(o)], s)
		if s.AvailableIn > 0 && (wake == 0 || s.AvailableIn < wake) {
			wake = s.AvailableIn
		}
	}
	m.manage(cluster.List[*corev1.Node](view.View))
	if len(m.steps) == 0 && !onDelete(set) {
		m.update(cluster.List[*corev1.Node](view.View))
	}
	return m.steps, wake
}

// revisionOf tells templates apart, as far as a trace changes them.
func revisionOf(t *corev1.PodTemplateSpec) string {
	return strings.ReplaceAll(t.Spec.Containers[0].Image, ":", "-") + t.Spec.NodeSelector["color"]
}

type builtInPass struct {
	*builtIn
	set      *v1beta1.DaemonSet
	revision string
	pods     map[string][]podstate.State // by node
	steps    []action.Step
}

func (m *builtInPass) create(node string) {
	m.made++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", m.made), Namespace: m.set.Namespace, OwnerReferences: []metav1.OwnerReference{controllerRef(m.set)},
			Labels: map[string]string{"app": "web", contract.RevisionLabel: m.revision},
		},
		Spec: *m.set.Spec.Template.Spec.DeepCopy(),
	}
	eligibility.Pin(&pod.Spec, node)
	m.steps = append(m.steps, action.Step{Name: "create", Actions: []action.Action{{Verb: action.Create, Object: pod}}})
}

func (m *builtInPass) delete(o podstate.State) {
	if !o.Terminating {
		m.steps = append(m.steps, action.Step{Name: "delete", Actions: []action.Action{{Verb: action.Delete, Object: o.Pod}}})
	}
}

func (m *builtInPass) isNew(o podstate.State) bool {
	return o.Pod.Labels[contract.RevisionLabel] == m.revision
}

// manage gives every eligible node one pod, and takes those away that wait for nodes that are gone.
func (m *builtInPass) manage(nodes []*corev1.Node) {
	template, exists := eligibility.Compile(&m.set.Spec.Template, eligibility.ForDaemons), map[string]bool{}
	for _, n := range nodes {
		exists[n.Name] = true
	}
	for name, on := range m.pods {
		for _, o := range on {
			if !exists[name] && !o.Assigned {
				m.delete(o)
			}
		}
	}
	for _, n := range nodes {
		verdict, on := template.Of(n), m.pods[n.Name]
		var running []podstate.State
		for _, o := range on {
			switch {
			case !verdict.ShouldContinue, !o.Active && !o.Terminating:
				m.delete(o)
			case o.Active:
				running = append(running, o)
			}
		}
		switch {
		case !verdict.ShouldContinue:
		case len(on) == 0 && verdict.ShouldRun:
			m.create(n.Name)
		case len(running) > 1 && !surges(m.set):
			for _, o := range running[1:] {
				m.delete(o)
			}
		}
	}
}

// oldAndNew are the pods of either kind on the node.
func (m *builtInPass) oldAndNew(node string) (old, updated *podstate.State) {
	for i, o := range m.pods[node] {
		switch {
		case !o.Active:
		case m.isNew(o):
			updated = &m.pods[node][i]
		default:
			old = &m.pods[node][i]
		}
	}
	return old, updated
}

func (m *builtInPass) update(nodes []*corev1.Node) {
	template := eligibility.Compile(&m.set.Spec.Template, eligibility.ForDaemons)
	desired := 0
	for _, n := range nodes {
		if template.Of(n).ShouldRun {
			desired++
		}
	}
	numbers, err := readNumbers(m.set, desired, desired)
	if err != nil {
		return
	}
	unavailable, surging := 0, 0
	var candidates []podstate.State
	for _, n := range nodes {
		if len(m.pods[n.Name]) == 0 && !template.Of(n).ShouldRun {
			continue
		}
		old, updated := m.oldAndNew(n.Name)
		switch {
		case surges(m.set) && old != nil && updated != nil && (updated.Available || !old.Ready):
			m.delete(*old)
		case surges(m.set) && old != nil && updated != nil:
			surging++
		case surges(m.set) && old != nil && !old.Available:
			m.create(n.Name)
		case surges(m.set):
			if old != nil {
				candidates = append(candidates, *old)
			}
		case old == nil && updated == nil, old == nil && !updated.Available:
			unavailable++
		case old != nil && !old.Available:
			unavailable++
			m.delete(*old)
		case old != nil:
			candidates = append(candidates, *old)
		}
	}
	for _, o := range candidates {
		switch {
		case surges(m.set) && surging < numbers.maxSurge:
			surging++
			m.create(eligibility.NodeOf(o.Pod))
		case !surges(m.set) && unavailable < numbers.maxUnavailable:
			unavailable++
			m.delete(o)
		}
	}
}

// images are the images of the active pods on each node.
func images(w *simulate.World) map[string]string {
	all := map[string]string{}
	for _, o := range w.View(nil).Active("set-uid") {
		all[eligibility.NodeOf(o)] += o.Spec.Containers[0].Image
	}
	return all
}

// run plays a trace and returns which images run where in the end, and how many nodes were out of service at most once
// all had started.
func run(t *testing.T, planner operator.Planner, w *simulate.World) (end map[string]string, worst int) {
	t.Helper()
	started := false
	w.OnEvent(func(w *simulate.World, _ cluster.Event) {
		out := outOfService(w.View(nil))
		started = started || out == 0
		if started {
			worst = max(worst, out)
		}
	})
	simulate.Settle(t, w, planner, 2000)
	return images(w), worst
}

// unjudged is a world with the set, which nobody judges.
func unjudged(options cluster.Options, nodes int, change ...setOption) *simulate.World {
	set := newSet(change...)
	set.Generation, options.Nodes = 1, nodes
	w := simulate.New(options, set)
	w.AddNodes(nodes)
	return w
}

// The same user, the same nodes: the set ends as one of the built-in kind would, and never has fewer pods in service on
// the way.
func TestItEndsAsTheBuiltInKind(t *testing.T) {
	taint := func(w *simulate.World, name string, effect corev1.TaintEffect) {
		w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) {
			n.Spec.Taints = nil
			if effect != "" {
				n.Spec.Taints = []corev1.Taint{{Key: "busy", Effect: effect}}
			}
		})
	}
	cases := []struct {
		name  string
		nodes int
		given []setOption
		tell  func(w *simulate.World)
	}{
		{"first pods", 4, nil, func(*simulate.World) {}},
		{"an update", 4, nil, timely(time.Minute, wants("app:2"))},
		{"two at a time", 5, []setOption{maxUnavailable("40%")}, timely(time.Minute, wants("app:2"))},
		{"with minReadySeconds", 3, []setOption{minReady(10)}, timely(time.Minute, wants("app:2"))},
		{"two updates within minReadySeconds", 4, []setOption{minReady(30)}, timely(40*time.Second, wants("app:2"), wants("app:3"))},
		{"a surge", 4, []setOption{maxSurge("1")}, timely(time.Minute, wants("app:2"))},
		{"a surge of all with minReadySeconds", 3, []setOption{maxSurge("100%"), minReady(10)}, timely(time.Minute, wants("app:2"))},
		{"a bad image and a good one", 4, []setOption{maxUnavailable("2")}, timely(time.Minute, wants("app:bad"), wants("app:2"))},
		{"a bad image in a surge", 4, []setOption{maxSurge("2")}, timely(time.Minute, wants("app:bad"), wants("app:2"))},
		{"a node selector", 3, nil, func(w *simulate.World) {
			w.EditNode(cluster.CloudActor, "node-1", func(n *corev1.Node) { n.Labels["color"] = "blue" })
			w.After(time.Minute, func() {
				edit(w, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"} })
			})
		}},
		{"taints", 3, nil, func(w *simulate.World) {
			w.After(time.Minute, func() { taint(w, "node-0", corev1.TaintEffectNoSchedule) })
			w.After(time.Minute, func() { taint(w, "node-1", corev1.TaintEffectNoExecute) })
			w.After(2*time.Minute, func() { taint(w, "node-1", "") })
		}},
		{"nodes come and go", 3, nil, func(w *simulate.World) {
			w.After(time.Minute, func() { w.AddNode("node-7") })
			w.After(2*time.Minute, func() { w.RemoveNode("node-0") })
			w.After(2*time.Minute+30*time.Second, func() { edit(w, image("app:2")) })
		}},
		{"OnDelete", 3, []setOption{deleting}, func(w *simulate.World) {
			w.After(time.Minute, func() { edit(w, image("app:2")) })
			w.After(2*time.Minute, func() { deletePodOn(w, "node-1") })
		}},
		{"a failing node", 3, nil, func(w *simulate.World) {
			w.After(time.Minute, func() { w.FailNode("node-1") })
			w.After(2*time.Minute, func() { edit(w, image("app:2")) })
			w.After(3*time.Minute, func() { w.RecoverNode("node-1") })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := cluster.Options{Calm: true, Seed: 1, Images: map[string]cluster.Image{"app:bad": {CrashLoop: true}}}
			theirs := unjudged(options, c.nodes, c.given...)
			c.tell(theirs)
			wantEnd, theirWorst := run(t, &builtIn{}, theirs)
			ours, p := play(t, options, c.nodes, c.given...)
			c.tell(ours)
			end, worst := run(t, p, ours)
			require.Equal(t, wantEnd, end, "their story:\n%s\nours:\n%s", theirs.Story(), ours.Story())
			assert.LessOrEqual(t, worst, theirWorst, "their story:\n%s\nours:\n%s", theirs.Story(), ours.Story())
		})
	}
}

func deletePodOn(w *simulate.World, node string) {
	for _, o := range w.Pods() {
		if o.Spec.NodeName == node {
			_ = w.Delete(cluster.UserActor, o)
		}
	}
}

// Random edits of what the built-in kind knows, and random nodes: the end is the same.
func TestRandomTracesEndAsTheBuiltInKind(t *testing.T) {
	seeds.Each(t, 150, func(t *testing.T, seed uint64) {
		t.Helper()
		tell := func(w *simulate.World) {
			rng := rand.New(rand.NewPCG(seed, 5))
			at := time.Minute
			for range 1 + rng.IntN(5) {
				act := randomTrace(rng)
				w.After(at, func() { act(w) })
				at += time.Duration(1+rng.IntN(60)) * time.Second
			}
		}
		theirs, ours := cluster.Options{Seed: seed}, cluster.Options{Seed: seed}
		w := unjudged(theirs, 4)
		tell(w)
		wantEnd, _ := run(t, &builtIn{}, w)
		v, p := play(t, ours, 4)
		tell(v)
		end, _ := run(t, p, v)
		require.Equal(t, wantEnd, end, "their story:\n%s\nours:\n%s", w.Story(), v.Story())
	})
}

// randomTrace is something that a user or a cloud does. There is no taint NoSchedule: whether a node with one has lost
// its pod to an update depends on the order of nodes, which the built-in kind leaves to chance.
func randomTrace(rng *rand.Rand) func(*simulate.World) {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	name := fmt.Sprintf("node-%d", rng.IntN(5))
	changes := []func(w *simulate.World){
		func(w *simulate.World) { w.RemoveNode(name) },
		func(w *simulate.World) {
			if !w.HasNode(name) {
				w.AddNode(name)
			}
		},
		func(w *simulate.World) { w.EditNode(cluster.CloudActor, name, tainted(corev1.TaintEffectNoExecute)) },
		func(w *simulate.World) {
			w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) { n.Spec.Taints = nil })
		},
	}
	edits := []setOption{
		image(pick("app:1", "app:2", "app:3")), image(pick("app:1", "app:2", "app:3")), maxUnavailable(pick("1", "2", "50%")), maxSurge(pick("1", "100%")),
		minReady(int32(rng.IntN(10))),
	}
	for _, e := range edits {
		changes = append(changes, func(w *simulate.World) { edit(w, e) })
	}
	return changes[rng.IntN(len(changes))]
}
