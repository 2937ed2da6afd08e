package sidecarterminator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

func vars(all ...corev1.EnvVar) []corev1.EnvVar { return all }

func quickExit() corev1.EnvVar { return variable(v1beta1.TerminateSidecarImageEnv, "quick-exit:1") }

func ignored() corev1.EnvVar { return variable(v1beta1.IgnoreSidecarExitCodeEnv, "true") }

// told returns how many events of the reason there are about the pod, and how often they were repeated.
func told(t require.TestingT, c client.Client, pod *corev1.Pod, reason string) (events, times int) {
	list := &eventsv1.EventList{}
	require.NoError(t, c.List(context.Background(), list, client.InNamespace(pod.Namespace)))
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.UID == pod.UID && e.Reason == reason {
			events++
			times++
			if e.Series != nil {
				times += int(e.Series.Count) - 1
			}
		}
	}
	return events, times
}

// The first test: no other one may have had the kind served to the same manager.
func TestItBeginsWhenRequestsAreServed(t *testing.T) {
	require.NoError(t, envtest.UninstallCRDs(env.Config, definition(t)))
	d, err := discovery.NewDiscoveryClientForConfig(env.Config)
	require.NoError(t, err)
	await.Until(t, func(collect *assert.CollectT) {
		_, err := d.ServerResourcesForGroupVersion(daemon.GroupVersion.String())
		assert.Error(collect, err)
	})
	namespace := env.Namespace(t)
	c := givenControllerOf(t, env, namespace)
	pod := givenPod(t, c, namespace, realNode, vars(stopped()), nil)
	exit(t, c, pod, "main", 0)
	exit(t, c, pod, "mesh", 0)
	await.Until(t, func(collect *assert.CollectT) {
		n, _ := told(collect, c, pod, plan.EventUnavailable)
		assert.Equal(collect, 1, n)
	})
	other := givenPod(t, c, namespace, virtual, vars(quickExit()), nil, func(pod *corev1.Pod) { pod.Name = "virtual" })
	exit(t, c, other, "main", 0)
	exit(t, c, other, "mesh", 0)
	imageBecomes(t, c, other, "log", "quick-exit:1")

	givenRequests(t)
	requested(t, c, pod, "", "log")
	_, times := told(t, c, pod, plan.EventUnavailable)
	assert.Equal(t, 1, times, "one event a pod")
}

func imageBecomes(t *testing.T, c client.Client, pod *corev1.Pod, container, image string) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		for _, has := range pod.Spec.Containers {
			if has.Name == container {
				assert.Equal(collect, image, has.Image)
			}
		}
	})
}

func TestSidecarsAreStoppedAfterTheMainContainer(t *testing.T) {
	namespace := env.Namespace(t)
	c := givenController(t, namespace)
	audit := env.Audit(t)
	pod := givenPod(t, c, namespace, realNode, vars(stopped()), vars(stopped(), quickExit()))
	exit(t, c, pod, "main", 0)
	r := requested(t, c, pod, "", "log", "mesh")
	assert.EqualValues(t, 660, *r.Spec.ActiveDeadlineSeconds)

	exit(t, c, pod, "log", 143)
	exit(t, c, pod, "mesh", 0)
	report(t, c, pod, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
	await.Until(t, func(collect *assert.CollectT) {
		n, times := told(collect, c, pod, plan.EventTerminating)
		assert.Equal(collect, [2]int{1, 1}, [2]int{n, times})
	})
	writes := audit.Writes(t, userAgent)
	delete(writes, "create events")
	assert.Equal(t, map[string]int{"create containerrecreaterequests": 1}, writes, "the phase is the kubelet's")
}

// The pod has the result of its main container, whatever becomes of the sidecar, and whoever writes over it.
func TestTheResultIsThatOfTheMainContainer(t *testing.T) {
	for name, test := range map[string]struct {
		code  int32
		phase corev1.PodPhase
	}{"success": {0, corev1.PodSucceeded}, "failure": {3, corev1.PodFailed}} {
		t.Run(name, func(t *testing.T) {
			namespace := env.Namespace(t)
			c := givenController(t, namespace)
			audit := env.Audit(t)
			pod := givenPod(t, c, namespace, realNode, vars(stopped(), ignored()), vars(stopped()))
			exit(t, c, pod, "main", test.code)
			requested(t, c, pod, "", "mesh")
			exit(t, c, pod, "mesh", 137)
			requested(t, c, pod, "-ignore", "log")
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.Equal(t, test.phase, pod.Status.Phase, "it is decided before the sidecar is stopped")
			decided := podstate.Condition(pod, contract.SidecarTerminated)
			require.NotNil(t, decided)
			assert.Equal(t, corev1.ConditionTrue, decided.Status)
			assert.Equal(t, "Terminated by Sidecar Terminator", decided.Message)

			report(t, c, pod, func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })
			phaseBecomes(t, c, pod, test.phase)
			writes := audit.Writes(t, userAgent)
			delete(writes, "create events")
			assert.Equal(t, map[string]int{"create containerrecreaterequests": 2, "patch pods/status": 2}, writes)
		})
	}
}

func phaseBecomes(t *testing.T, c client.Client, pod *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(collect, phase, pod.Status.Phase)
	})
}

// A sidecar whose code makes the kubelet start it again is stopped again.
func TestASidecarThatRunsAgainIsStoppedAgain(t *testing.T) {
	namespace := env.Namespace(t)
	c := givenController(t, namespace)
	pod := givenPod(t, c, namespace, realNode, vars(stopped()), nil, func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		pod.Spec.Containers = pod.Spec.Containers[:2]
	})
	exit(t, c, pod, "main", 0)
	r := requested(t, c, pod, "", "log")
	exit(t, c, pod, "log", 143)
	report(t, c, pod, func(s *corev1.PodStatus) {
		s.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		s.ContainerStatuses[1].RestartCount, s.ContainerStatuses[1].ContainerID = 1, "containerd://log-2"
	})
	before := r.DeepCopy()
	r.Status = daemon.ContainerRecreateRequestStatus{
		Phase:                   daemon.RecreateCompleted,
		ContainerRecreateStates: []daemon.ContainerRecreateState{{Name: "log", Phase: daemon.RecreateSucceeded, IsKilled: true}},
	}
	require.NoError(t, c.Status().Patch(t.Context(), r, client.MergeFrom(before)))
	requested(t, c, pod, "-2", "log")
}

// Whichever write is the last one of a manager, the next one goes on, and nothing happens twice.
func TestAKilledManagerLeavesNothingUndone(t *testing.T) {
	givenRequests(t)
	for writes := int64(1); writes <= 2; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			namespace := env.Namespace(t)
			c := env.Client(t)
			audit := env.Audit(t)
			send, dead := faults.Kill(writes)
			var pod *corev1.Pod
			t.Run("killed", func(t *testing.T) {
				givenControllerOf(t, faults.Over(env, send), namespace)
				pod = givenPod(t, c, namespace, realNode, vars(stopped(), ignored()), nil, func(pod *corev1.Pod) {
					pod.Spec.Containers = pod.Spec.Containers[:2]
				})
				exit(t, c, pod, "main", 0)
				select {
				case <-dead:
				case <-t.Context().Done():
				}
			})
			givenControllerOf(t, env, namespace)
			requested(t, c, pod, "-ignore", "log")
			phaseBecomes(t, c, pod, corev1.PodSucceeded)
			made := audit.Writes(t, userAgent)
			assert.Equal(t, 1, made["create containerrecreaterequests"])
			assert.Equal(t, 1, made["patch pods/status"])
		})
	}
}
