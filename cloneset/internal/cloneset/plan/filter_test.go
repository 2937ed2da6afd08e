package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// The controller does not think when podstate.Changed says that a new version of a pod tells it
// nothing. So a plan and a status made from either version must be the same: here for pods in any
// condition and for anything that somebody may have written to one of them.
func TestUnchangedPodsChangeNoPlan(t *testing.T) {
	filtered, differing := 0, 0
	worlds := seeds.Each(t, 4000, func(t *testing.T, seed uint64) {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 7))
		w := randomPods(t, rng)
		before := thoughts(w.snapshot())
		i := rng.IntN(len(w.pods))
		old, now := w.pods[i], w.pods[i].DeepCopy()
		for range 1 + rng.IntN(3) {
			randomWrite(rng, now)
		}
		w.pods[i] = now
		after := thoughts(w.snapshot())
		if podstate.Changed(old, now) {
			if before != after {
				differing++
			}
			return
		}
		filtered++
		require.Equal(t, before, after, "the status of the pod was\n%+v\nand is\n%+v", old.Status, now.Status)
	})
	t.Logf("%d of %d writes were filtered, %d of the others changed the plan", filtered, worlds, differing)
	require.True(t, worlds < 2000 || filtered > worlds/20 && differing > worlds/20, "the worlds are too dull")
}

// thoughts are the plan and the status as text.
func thoughts(s Snapshot) string {
	todo := Compute(s)
	status, err := json.MarshalIndent(Status(s, todo, action.Failures{}), "", " ")
	return fmt.Sprintf("%s%s %v", todo.String(), status, err)
}

// randomPods is a set in the middle of something, with pods in all states.
func randomPods(t *testing.T, rng *rand.Rand) *world {
	t.Helper()
	w := given(t, int32(1+rng.IntN(4)), randomSet(rng), newResources(rng))
	for range 1 + rng.IntN(4) {
		options := randomPod(rng)
		if rng.IntN(2) == 0 {
			w.old(1, options...)
		} else {
			w.updated(1, options...)
		}
	}
	return w
}

// newResources sometimes lets the template ask for other resources than the older revision did.
func newResources(rng *rand.Rand) setOption {
	cpu := []string{"", "1", "2"}[rng.IntN(3)]
	return func(s *v1beta1.CloneSet) {
		if cpu != "" {
			s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
	}
}

func randomPod(rng *rand.Rand) []gen.PodOption {
	states := []string{
		contract.LifecycleNormal, contract.LifecycleNormal, contract.LifecycleNormal, contract.LifecyclePreparingNormal,
		contract.LifecyclePreparingUpdate, contract.LifecycleUpdating, contract.LifecycleUpdated, contract.LifecyclePreparingDelete,
	}
	options := []gen.PodOption{gen.Lifecycle(states[rng.IntN(len(states))]), gen.ReadinessGate(contract.KruisePodReady)}
	sometimes := func(option gen.PodOption) {
		if rng.IntN(4) == 0 {
			options = append(options, option)
		}
	}
	sometimes(gen.NotReady(now.Add(-time.Duration(rng.IntN(20)) * time.Second)))
	sometimes(gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now.Add(-time.Minute)))
	sometimes(gen.Label("hook", "on"))
	sometimes(gen.Restarts(int32(rng.IntN(3))))
	for _, kind := range []string{"updateImages", "updateResources", "updateEnvFromMetadata"} {
		sometimes(gen.Annotation(contract.InPlaceUpdateStateAnnotation, fmt.Sprintf(
			`{"revision":"web-x","updateTimestamp":%q,"lastContainerStatuses":{"main":{"imageID":"sha256:app:1"}},%q:true}`,
			now.Add(-time.Minute).Format(time.RFC3339), kind)))
	}
	return options
}

// randomWrite is what kubelets, node agents and others write to a pod.
func randomWrite(rng *rand.Rand, o *corev1.Pod) {
	if len(o.Status.ContainerStatuses) == 0 {
		o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
	}
	status := &o.Status.ContainerStatuses[0]
	conditions := []corev1.PodConditionType{
		corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, corev1.PodInitialized, corev1.DisruptionTarget,
		corev1.PodResizePending, corev1.PodResizeInProgress, contract.InPlaceUpdateReady, contract.KruisePodReady,
	}
	truth := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[rng.IntN(2)]
	former := &corev1.ContainerStateTerminated{
		ExitCode: int32(rng.IntN(2)), Reason: "Error",
		StartedAt: metav1.NewTime(now.Add(-time.Duration(rng.IntN(20)) * time.Minute)), FinishedAt: metav1.NewTime(now),
	}
	switch rng.IntN(19) {
	case 0:
		o.ResourceVersion += "1"
	case 1:
		o.Status.PodIP = fmt.Sprintf("10.0.0.%d", rng.IntN(9))
	case 2:
		o.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}[rng.IntN(3)]
	case 3:
		o.Status.ObservedGeneration = int64(rng.IntN(3))
	case 4:
		status.Ready = !status.Ready
	case 5:
		status.RestartCount++
	case 6:
		status.ContainerID = fmt.Sprintf("containerd://%d", rng.IntN(3))
	case 7:
		status.ImageID = fmt.Sprintf("sha256:app:%d", rng.IntN(3))
	case 8:
		status.Image = fmt.Sprintf("app:%d", rng.IntN(3))
	case 9:
		reasons := []string{"CrashLoopBackOff", "ContainerCreating", "ErrImagePull", "ImagePullBackOff", "RunContainerError"}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reasons[rng.IntN(len(reasons))]}}
	case 10:
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	case 11:
		status.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	case 12:
		gen.Condition(conditions[rng.IntN(len(conditions))], truth, now.Add(-time.Duration(rng.IntN(9))*time.Second))(o)
	case 13:
		c := &o.Status.Conditions[rng.IntN(len(o.Status.Conditions))]
		c.Reason, c.Message, c.LastProbeTime = "Other", "other", metav1.NewTime(now)
	case 14:
		c := podstate.Condition(o, conditions[rng.IntN(len(conditions))])
		if c != nil {
			o.Status.Conditions = slices.DeleteFunc(o.Status.Conditions, func(d corev1.PodCondition) bool { return d.Type == c.Type })
		}
	case 15:
		o.Annotations = map[string]string{"note": "other"}
	case 16:
		status.LastTerminationState.Terminated = former
	case 17:
		status.State = corev1.ContainerState{Terminated: former}
	default:
		o.Status.StartTime = new(metav1.NewTime(now))
	}
}

// A controller that thinks only when something has changed, or when a plan has asked for it, gets
// every world where it belongs.
func TestFilteredEventsGetEverywhere(t *testing.T) {
	seeds.Each(t, 66, func(t *testing.T, seed uint64) {
		t.Helper()
		w, p := walk(t, seed, requests("1"))
		rng := rand.New(rand.NewPCG(seed, 13))
		for i := range rng.IntN(4) {
			cpu := []string{"1", "2", "3"}[rng.IntN(3)]
			w.After(time.Duration(5+20*i)*time.Second, func() { edit(w, requests(cpu), valid) })
		}
		noise(w, rng)
		w.PullImages(func(string, int) bool { return false }) // a set looks after its jobs until they end
		err := runFiltered(w, p)
		if err == nil && len(unarrived(w)) > 0 {
			err = fmt.Errorf("did not arrive: %s", strings.Join(unarrived(w), "; "))
		}
		if err != nil {
			require.NoError(t, err, "spec %+v, the story:\n%s", describeSpec(present(w)), w.Story())
		}
	})
}

// noise are kubelets' writes that tell a plan nothing, at all times.
func noise(w *simulate.World, rng *rand.Rand) {
	for i := range 500 {
		w.After(time.Duration(rng.IntN(300000))*time.Millisecond, func() {
			if pods := activePods(w); len(pods) > 0 {
				_ = cluster.Change(w, cluster.KubeletActor, "status", pods[i%len(pods)], func(o *corev1.Pod) {
					o.Status.HostIP = fmt.Sprintf("10.0.0.%d", i)
				})
			}
		})
	}
}

// requests asks for cpu.
func requests(cpu string) setOption {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// runFiltered runs passes as the controller does: after events that it does not filter, when the
// last plan has asked for one, and some time after a write that met an outdated version, since the
// event of the newer one may have been filtered.
func runFiltered(w *simulate.World, p *player) error {
	awake := true
	w.OnEvent(func(_ *simulate.World, e cluster.Event) {
		old, okOld := e.Old.(*corev1.Pod)
		now, okNow := e.Object.(*corev1.Pod)
		awake = awake || e.Type != cluster.Modified || !okOld || !okNow || podstate.Changed(old, now)
	})
	operator := simulate.NewOperator(w, p, simulate.Faults{Interleave: 0.2, Passes: 1000})
	var due time.Time
	for range 20000 {
		if !due.IsZero() && !w.Now().Before(due) {
			awake = true
		}
		switch {
		case awake:
			awake = false
			out, wake := operator.Pass()
			if out.Stale > 0 && (wake == 0 || wake > time.Second) {
				wake = time.Second
			}
			if due = (time.Time{}); wake > 0 {
				due = w.Now().Add(wake)
			}
		case !w.Quiet():
			w.Advance(100 * time.Millisecond)
		case !due.IsZero():
			w.Advance(due.Sub(w.Now()))
		default:
			return nil
		}
	}
	return fmt.Errorf("no end of passes")
}
