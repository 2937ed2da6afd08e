package podupdate

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// A pod that serves leaves service first. What follows is known to the server's dry runs from the beginning.
func TestUpdatesOfPodsThatServeSayWhatFollows(t *testing.T) {
	for grace, later := range map[int32]int{0: 1, 20: 2} { // the beginning of a grace period is written, too
		g := givenWorkload(t, InPlaceIfPossible, nil)
		g.GraceSeconds = grace
		u, err := g.UpdatePath(g.pod(t), g.revisions[1])
		require.NoError(t, err)
		a := g.UpdateInPlace(g.pod(t), u, g.revisions[1])
		assert.Equal(t, action.UpdateInPlace, a.Verb)
		require.Len(t, a.Patches, 1)
		assert.Equal(t, "status", a.Patches[0].Subresource)
		assert.NotContains(t, fmt.Sprint(a.Patches), "ReadinessGatesNotReady")
		require.Len(t, a.LaterPatches, later)
		assert.Contains(t, fmt.Sprint(a.LaterPatches), "app:2")
	}
}

// planned is a pod of the one revision whose update to the other one is planned: it is out of service. It was before, so
// that its grace period has begun, or its kubelet has just answered.
func (g *given) planned(t *testing.T, from, to *appsv1.ControllerRevision, grace int32, before bool) podstate.State {
	t.Helper()
	g.GraceSeconds = grace
	ready := g.pod(t, gen.FromTemplate(templateOf(t, from)), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Revision(from.Name), gen.Change(func(pod *corev1.Pod) {
		tells := fmt.Sprintf(`{"containers":[{"name":"main","containerID":%q,"hashes":{"extractedEnvFromMetadataHash":%d}}]}`,
			pod.Status.ContainerStatuses[0].ContainerID, agentreport.ExpectedEnvHash(&pod.Spec.Containers[0], pod))
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, contract.RuntimeContainersMetaAnnotation, tells)
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}
	}))
	out := podstate.Condition(ready.Pod, corev1.PodReady)
	if before {
		out.Status = corev1.ConditionFalse
	}
	u, err := g.UpdatePath(ready, to)
	require.NoError(t, err)
	require.NotNil(t, u)
	c := g.Change(ready.Pod)
	u.Begin(c, grace)
	require.NotEmpty(t, c.Annotation(contract.InPlaceUpdateGraceAnnotation))
	pod := ready.Pod
	for _, key := range []string{contract.InPlaceUpdateGraceAnnotation, contract.InPlaceUpdateStateAnnotation} {
		pod.Annotations[key] = c.Annotation(key)
	}
	pod.Labels[contract.RevisionLabel], pod.Labels[contract.LifecycleStateLabel] = to.Name, contract.LifecycleUpdating
	out.Status = corev1.ConditionFalse
	*podstate.Condition(pod, contract.InPlaceUpdateReady) = corev1.PodCondition{
		Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: completion.ReasonStartUpdate, LastTransitionTime: metav1.NewTime(now),
	}
	return podstate.Of(pod, now, 0)
}

// givenNextContainers is a pod that is out of service and whose grace period is over: its next containers are due.
func givenNextContainers(t *testing.T) (*given, podstate.State) {
	t.Helper()
	g := givenWorkload(t, InPlaceIfPossible, nil)
	out := g.planned(t, g.revisions[0], g.revisions[1], 20, true)
	g.Now = now.Add(time.Minute)
	return g, out
}

// What follows is told where it fails, as the beginning is.
func TestALaterWriteThatFailsIsTold(t *testing.T) {
	g, out := givenNextContainers(t)
	found := g.Refresh(out, true)
	require.NotNil(t, found.Action)
	assert.Equal(t, &action.Event{Failed: EventInPlaceFailed}, found.Action.Event)
}

// A pod that is out of service while the server refuses what comes next in its update serves before that is tried again,
// whatever it writes. Before the pod leaves service once more, all of it goes as dry runs.
func TestPodsServeBeforeTheNextTry(t *testing.T) {
	readsLabel := func(g *given) podstate.State {
		from, to := g.readingRevisions(t)
		return g.planned(t, from, to, 20, true)
	}
	newImage := func(grace int32, before bool) func(*given) podstate.State {
		return func(g *given) podstate.State { return g.planned(t, g.revisions[0], g.revisions[1], grace, before) }
	}
	for name, c := range map[string]struct {
		out    func(*given) podstate.State
		passed time.Duration
		later  []string // what each of the later writes is of
	}{
		"an image":                         {newImage(20, true), time.Minute, []string{"metadata", "spec"}},
		"a label that a container reads":   {readsLabel, time.Minute, []string{"metadata", "metadata"}},
		"the beginning of a grace period":  {newImage(20, false), 2 * time.Second, []string{"metadata", "spec"}},
		"an image, without a grace period": {newImage(0, false), time.Second, []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, InPlaceIfPossible, nil)
			out := c.out(g)
			g.Now = now.Add(c.passed)
			g.plan = action.Plan{}
			next := g.Refresh(out, true).Action
			require.NotNil(t, next)
			require.Equal(t, action.UpdateInPlace, next.Verb)
			refuse := func(revision string) {
				g.plan = action.Plan{Now: g.Now, Refusals: action.Refusals{next.Purpose(): {
					Probing: true, Told: action.Told{Message: "no"}, Targets: map[string]action.Refusal{next.Target(): {Revision: revision}},
				}}}
			}
			refuse("of-before")
			onward := g.Refresh(out, true).Action
			require.NotNil(t, onward)
			assert.Equal(t, next.Purpose(), onward.Purpose(), "the server has not seen the containers of this revision")

			refuse(next.Revision)
			back := g.Refresh(out, true).Action
			require.NotNil(t, back)
			assert.Equal(t, "Serve", back.Reason)

			served := out.Pod.DeepCopy()
			*podstate.Condition(served, contract.InPlaceUpdateReady) = corev1.PodCondition{
				Type: contract.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(g.Now),
			}
			gen.Condition(corev1.ContainersReady, corev1.ConditionTrue, now)(served)
			refuse(next.Revision)
			waits := g.Refresh(podstate.Of(served, g.Now, 0), true)
			assert.Nil(t, waits.Action, "the kubelet is about to report it ready")
			assert.NotNil(t, waits.Held)
			assert.InDelta(t, 10*time.Second, g.plan.RequeueAfter, float64(time.Second))

			serving := out.Pod.DeepCopy()
			for _, condition := range []corev1.PodConditionType{contract.InPlaceUpdateReady, corev1.PodReady} {
				podstate.Condition(serving, condition).Status, podstate.Condition(serving, condition).Reason = corev1.ConditionTrue, ""
			}
			podstate.Condition(serving, corev1.PodReady).LastTransitionTime = metav1.NewTime(g.Now)
			refuse(next.Revision)
			again := g.Refresh(podstate.Of(serving, g.Now, 0), true).Action
			require.NotNil(t, again)
			assert.Equal(t, next.Purpose(), again.Purpose())
			var later []string
			for _, patch := range again.LaterPatches {
				if _, ok := patch.Body["spec"]; ok {
					later = append(later, "spec")
				} else {
					later = append(later, "metadata")
				}
			}
			assert.Equal(t, c.later, later)
		})
	}
}

// barrier is the environment by which a container has a launch priority.
func barrier(priority string) []corev1.EnvVar {
	key := &corev1.ConfigMapKeySelector{Key: contract.ContainerBarrierKeyPrefix + priority}
	return []corev1.EnvVar{{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: key}}}
}

// revisionOf is a revision that has the template.
func revisionOf(t *testing.T, template *corev1.PodTemplateSpec, number int64) *appsv1.ControllerRevision {
	t.Helper()
	r, err := revision.New(&metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, template, number, 0)
	require.NoError(t, err)
	return r
}

// tried are the resizes among the writes that the server tries before the action begins, by the number of containers.
func tried(a action.Action) []int {
	var containers []int
	for _, patch := range a.DryRunPatches() {
		if a.DryRun && patch.Subresource == "resize" {
			containers = append(containers, len(patch.Body["spec"].(map[string]any)["containers"].([]any)))
		}
	}
	return containers
}

// The server is asked before a pod leaves service for a resize, which its node may be too small for.
func TestPodsStayInServiceOnNodesThatAreTooSmall(t *testing.T) {
	for name, c := range map[string]struct {
		cpu    string
		second bool // a container of a lower launch priority asks for the same
		want   []int
	}{
		"an image and resources":                  {"2", false, []int{1}},
		"an image":                                {"1", false, nil},
		"resources of this and of a later batch":  {"2", true, []int{2}},
		"an image and nothing of the later batch": {"1", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, InPlaceIfPossible, nil)
			asks := func(from int, cpu string) *appsv1.ControllerRevision {
				template := templateOf(t, g.revisions[from])
				template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
				if c.second {
					second := *template.Spec.Containers[0].DeepCopy()
					second.Name = "second"
					template.Spec.Containers = append(template.Spec.Containers, second)
				}
				return revisionOf(t, &template, int64(from+4))
			}
			from, to := asks(0, "1"), asks(1, c.cpu)
			g.Revisions = NewRevisions([]*appsv1.ControllerRevision{from, to}, inplace.Options{Resize: true})
			o := g.pod(t, gen.FromTemplate(templateOf(t, from)), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Revision(from.Name), gen.Change(func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}
				for i := range pod.Spec.Containers {
					pod.Spec.Containers[i].Env = barrier(strconv.Itoa(10 - i))
					if i > 0 {
						status := pod.Status.ContainerStatuses[0].DeepCopy()
						status.Name = pod.Spec.Containers[i].Name
						pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, *status)
					}
				}
			}))
			u, err := g.UpdatePath(o, to)
			require.NoError(t, err)
			require.NotNil(t, u)
			g.plan.Add(action.Step{Name: "update", Actions: []action.Action{g.UpdateInPlace(o, u, to)}})
			assert.Equal(t, c.want, tried(g.plan.Steps[0].Actions[0]))

			pod := o.Pod.DeepCopy() // its update is planned and it serves, as after a refusal that nobody remembers
			change := g.Change(pod)
			u.Begin(change, 0)
			for _, key := range []string{contract.InPlaceUpdateGraceAnnotation, contract.InPlaceUpdateStateAnnotation} {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, change.Annotation(key))
			}
			pod.Labels[contract.RevisionLabel], pod.Labels[contract.LifecycleStateLabel] = to.Name, contract.LifecycleUpdating
			again := g.Refresh(podstate.Of(pod, now, 0), true).Action
			require.NotNil(t, again)
			assert.Equal(t, c.want, tried(*again))
		})
	}
}

// A pod that is not reported ready may be about to be. Its readiness gate closes together with the write of the resize, which
// the server is asked about first.
func TestPodsAboutToServeStayAsTheyAreOnNodesThatAreTooSmall(t *testing.T) {
	for cpu, want := range map[string][]int{"2": {1}, "1": nil} {
		g := givenWorkload(t, InPlaceIfPossible, nil)
		asks := func(from int, cpu string) *appsv1.ControllerRevision {
			template := templateOf(t, g.revisions[from])
			template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			return revisionOf(t, &template, int64(from+4))
		}
		from, to := asks(0, "1"), asks(1, cpu)
		g.Revisions = NewRevisions([]*appsv1.ControllerRevision{from, to}, inplace.Options{Resize: true})
		o := g.pod(t, gen.FromTemplate(templateOf(t, from)), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Revision(from.Name), gen.NotReady(now), gen.Change(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}
		}))
		u, err := g.UpdatePath(o, to)
		require.NoError(t, err)
		require.NotNil(t, u)
		a := g.UpdateInPlace(o, u, to)
		assert.Equal(t, "status", a.Patches[0].Subresource)
		assert.Equal(t, want, tried(a), cpu)
	}
}

// So does one that has to wait for long because the like of it is refused to another pod, but not for a moment, whether or not
// it has met conflicts itself.
func TestPodsServeWhileOthersAreRefused(t *testing.T) {
	g, out := givenNextContainers(t)
	next := g.Refresh(out, true).Action
	require.NotNil(t, next)
	for name, targets := range map[string]map[string]action.Refusal{
		"another pod alone":                  {"another": {}},
		"another pod, and this by conflicts": {"another": {}, next.Target(): {Transient: true, Revision: next.Revision}},
	} {
		for pause, want := range map[time.Duration]string{2 * time.Second: "Refresh", 20 * time.Second: "Serve"} {
			t.Run(fmt.Sprint(name, ", ", pause), func(t *testing.T) {
				g.plan = action.Plan{Now: g.Now, Refusals: action.Refusals{next.Purpose(): {
					Probing: true,
					Until:   g.Now.Add(pause),
					Told:    action.Told{Message: "no"},
					Targets: targets,
				}}}
				found := g.Refresh(out, true)
				if found.Held != nil {
					assert.Equal(t, want, found.Held.Reason)
					return
				}
				require.NotNil(t, found.Action)
				assert.Equal(t, want, found.Action.Reason)
			})
		}
	}
}
