package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
)

// node is a pod with three containers that read none, one and two annotations, and the kubelet and runtime
// that run them. The server refuses the annotation for a while.
type node struct {
	t        *testing.T
	random   *rand.Rand
	pod      *corev1.Pod
	now      time.Time
	runs     map[string]*plan.Container // the present run of each container
	count    int
	outdated map[string]plan.Outdated
	unread   map[string]plan.Unread
	restarts map[string]int
	refuses  bool // the server the annotation
	memory   refusals.Tracker
	tries    simulate.Tries
}

func reads(names ...string) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range names {
		all = append(all, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + name + "']"},
		}})
	}
	return all
}

func givenNode(t *testing.T, seed uint64) *node {
	t.Helper()
	n := &node{
		t: t, random: rand.New(rand.NewPCG(seed, 2)), now: now,
		runs: map[string]*plan.Container{}, restarts: map[string]int{},
		pod: pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": "0", "b": "0"}
			p.Spec.Containers = []corev1.Container{
				{Name: "none", Image: "i:0"}, {Name: "one", Image: "i:0", Env: reads("a")}, {Name: "both", Image: "i:0", Env: reads("b", "a")},
			}
		}),
	}
	for _, c := range n.pod.Spec.Containers {
		n.start(c.Name)
	}
	n.report()
	return n
}

// start runs a container as the kubelet does: with what the pod says now.
func (n *node) start(name string) {
	n.count++
	env := map[string]string{"PATH": "/bin"}
	maps.Copy(env, map[string]string{"a": n.pod.Annotations["a"], "b": n.pod.Annotations["b"]})
	n.runs[name] = &plan.Container{Name: name, ID: fmt.Sprintf("containerd://%d", n.count), Running: true, Env: env}
}

// report writes the pod's status.
func (n *node) report() {
	n.pod.Status.ContainerStatuses = nil
	for _, name := range []string{"both", "none", "one"} {
		n.pod.Status.ContainerStatuses = append(n.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, ContainerID: n.runs[name].ID})
	}
}

// pass makes a plan and follows it.
func (n *node) pass() plan.Plan {
	s := plan.Snapshot{Pod: n.pod, EnvFromMetadata: true, Outdated: n.outdated, Unread: n.unread, Now: n.now}
	for _, run := range n.runs {
		s.Containers = append(s.Containers, *run)
	}
	known := map[string]bool{}
	for _, id := range plan.NeedEnv(s) {
		known[id] = n.random.IntN(4) > 0 // the others cannot be read this time
	}
	for i := range s.Containers {
		if !known[s.Containers[i].ID] {
			s.Containers[i].Env = nil
		}
	}
	key := memory.KeyOf(n.pod)
	s.Refusals = n.memory.For(key, refusals.Observation{Now: n.now})
	todo := plan.Compute(s)
	now := func() time.Time { return n.now }
	done := progress.Run(todo.Steps, progress.InTurn(n.write, now), progress.Options{Workload: key, Refusals: &n.memory})
	n.unread = todo.Unread
	if !todo.Reported(&done) {
		return todo
	}
	n.outdated = todo.Outdated
	for _, id := range todo.Stop {
		require.NotEmpty(n.t, n.pod.Status.Conditions, "outside an update")
		for name, run := range n.runs {
			if run.ID == id {
				require.True(n.t, run.Running)
				run.Running = false
				n.restarts[name]++
			}
		}
	}
	return todo
}

// write is the server's answer to the annotation.
func (n *node) write(a *action.Action) progress.Outcome {
	if n.refuses {
		require.NoError(n.t, n.tries.Refused("the annotation", n.now))
		return progress.OutcomeOf(apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 0))
	}
	n.tries.Taken("the annotation")
	maps.Copy(n.pod.Annotations, a.Patches[0].Body["metadata"].(map[string]any)["annotations"].(map[string]string))
	return progress.OutcomeOf(nil)
}

// live lets time pass: the kubelet starts what has ended and reports late.
func (n *node) live() {
	n.now = n.now.Add(time.Duration(1+n.random.IntN(3)) * time.Second)
	for name, run := range n.runs {
		if !run.Running && n.random.IntN(2) == 0 {
			n.start(name)
		}
	}
	if n.random.IntN(3) > 0 {
		n.report()
	}
}

func TestOneChangeIsOneRestart(t *testing.T) {
	seeds.Each(t, 15, func(t *testing.T, seed uint64) {
		t.Helper()
		n := givenNode(t, seed)
		for range 6 {
			n.settle()
			n.restarts = map[string]int{}
			want := map[string]int{}
			key := []string{"a", "b", "other"}[n.random.IntN(3)]
			again := []string{"", "none", "one", "both"}[n.random.IntN(4)]
			n.pod.Annotations[key] = fmt.Sprint(n.count, "x")
			n.pod.Status.Conditions = nil
			if n.random.IntN(4) > 0 { // else a user did it
				updating(n.pod)
				for name, keys := range map[string]string{"one": "a", "both": "ab"} {
					if key != "other" && (keys == "ab" || keys == key) {
						want[name] = 1
					}
				}
				if again != "" {
					asked(fmt.Sprintf(`{%q:%q}`, again, n.runs[again].ID))(n.pod)
					want[again] = 1
				}
			}
			n.refuses = n.random.IntN(2) == 0
			for range 60 {
				n.pass()
				n.live()
			}
			n.refuses = false
			for range 80 {
				n.pass()
				n.live()
			}
			assert.Equal(t, want, n.restarts, "after a change of %s and a restart of %s", key, again)
			if len(want) == 0 && len(n.pod.Status.Conditions) == 0 {
				updating(n.pod) // what the user did is made up for by the next update
			}
		}
	})
}

// settle passes until nothing is left to do, and checks that the annotation tells the truth then.
func (n *node) settle() {
	for range 60 {
		n.pass()
		n.live()
	}
	n.report()
	for n.pass().RequeueAfter > 0 { // an environment that could not be read
		n.now = n.now.Add(3 * time.Second)
	}
	assert.Empty(n.t, n.pass().Annotation)
	meta, err := inplace.ReadRuntimeContainersMeta(n.pod)
	require.NoError(n.t, err)
	require.Len(n.t, meta.Containers, 3)
	for i, status := range n.pod.Status.ContainerStatuses {
		assert.Equal(n.t, status.Name, meta.Containers[i].Name)
		assert.Equal(n.t, n.runs[status.Name].ID, meta.Containers[i].ContainerID)
	}
}
