package plan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// node is a pod with three containers that read none, one and two annotations, the kubelet and runtime that run them, and
// the passes of the agent. The server refuses the annotation for a while.
type node struct {
	t        *testing.T
	random   *rand.Rand
	pod      *corev1.Pod
	now      time.Time
	runs     map[string]*plan.Container // the present run of each container
	count    int
	passes   *containermeta.Passes
	work     []func() // that a pass has begun
	restarts map[string]int
	refuses  bool // the server the annotation
	memory   refusals.Tracker
	tries    retries.Tries
}

// parts is the node as the agent sees it: the container runtime, the server, the clock, and what carries out stops.
type parts struct {
	client.Reader
	*node
}

func (p parts) Now() time.Time                  { return p.now }
func (p parts) Since(t time.Time) time.Duration { return p.now.Sub(t) }

func (p parts) Pod(context.Context, types.NamespacedName) (*corev1.Pod, error) {
	return p.pod.DeepCopy(), nil
}

func (p parts) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	p.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func (p parts) Containers(context.Context, string, string, []string) ([]cri.Container, error) {
	var all []cri.Container
	for _, run := range p.runs {
		state := cri.StateExited
		if run.Running {
			state = cri.StateRunning
		}
		all = append(all, cri.Container{ID: run.ID, Name: run.Name, State: state, Hash: run.Hash, Pod: cri.Pod{UID: p.pod.UID}})
	}
	return all, nil
}

// Details returns the environment of a container; sometimes it cannot be read.
func (p parts) Details(_ context.Context, id string) (cri.Status, error) {
	for _, run := range p.runs {
		if run.ID == id && p.random.IntN(4) > 0 {
			return cri.Status{Env: run.Env}, nil
		}
	}
	return cri.Status{}, nil
}

func (p parts) Env(context.Context, string) (map[string]string, error) {
	return nil, errors.New("the image has no command env")
}

func (p parts) Hook(context.Context, containerstop.Request) (time.Duration, error) { return 0, nil }

// Signal ends a run.
func (p parts) Signal(_ context.Context, o containerstop.Request, _ time.Duration) error {
	require.NotEmpty(p.t, p.pod.Status.Conditions, "outside an update")
	run := p.runs[o.Container.Name]
	require.Equal(p.t, run.ID, o.Container.ID)
	require.True(p.t, run.Running)
	run.Running = false
	p.restarts[run.Name]++
	return nil
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
	m, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	p := parts{node: n}
	n.passes = containermeta.NewPasses(containermeta.Sources{
		Pod: p.Pod, Live: p, Runtimes: p, Clock: p, Metrics: m, EnvFromMetadata: true,
		Refusals: func(pod client.Object, now time.Time) action.Refusals {
			return n.memory.For(memory.KeyOf(pod), refusals.Observation{Now: now})
		},
	}, stops.New(p, p, func(work func()) { n.work = append(n.work, work) }))
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

// pass runs a pass of the agent, and the stops that it begins.
func (n *node) pass() action.Plan {
	ctx := ctrl.LoggerInto(n.t.Context(), logr.Discard())
	pass, err := n.passes.Look(ctx, client.ObjectKeyFromObject(n.pod))
	require.NoError(n.t, err)
	now := func() time.Time { return n.now }
	pass.Do(ctx, func() progress.Result {
		return progress.Run(pass.Plan.Steps, progress.InTurn(n.write, now), progress.Options{Workload: memory.KeyOf(n.pod), Refusals: &n.memory})
	})
	for len(n.work) > 0 {
		work := n.work[0]
		n.work = n.work[1:]
		work()
	}
	return pass.Plan
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
	assert.Empty(n.t, n.pass().Steps)
	meta, err := agentreport.Read(n.pod)
	require.NoError(n.t, err)
	require.Len(n.t, meta.Containers, 3)
	for i, status := range n.pod.Status.ContainerStatuses {
		assert.Equal(n.t, status.Name, meta.Containers[i].Name)
		assert.Equal(n.t, n.runs[status.Name].ID, meta.Containers[i].ContainerID)
	}
}
