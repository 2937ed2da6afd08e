package containermeta

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // the runtime and the stops matter: the server holds pods, and nothing else of it is used

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// node is a node whose containers are stopped by the test.
type node struct {
	*Passes
	t       *testing.T
	server  client.Client
	runtime *simulate.Runtime
}

func givenNode(t *testing.T) *node {
	t.Helper()
	folder := simulate.Folder(t)
	runtime := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	m, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	runtimes := cri.New(cri.Config{Root: folder, Metrics: m, Clock: clock.RealClock{}, Log: logr.Discard()})
	runtimes.Probe(t.Context())
	server := fake.NewClientBuilder().Build()
	stopper := &containerstop.Stopper{Runtimes: runtimes, Events: &events.Recorder{EventRecorder: &clientevents.FakeRecorder{}}, Metrics: m, Clock: clock.RealClock{}}
	return &node{t: t, server: server, runtime: runtime, Passes: NewPasses(
		Sources{Live: server, Runtimes: runtimes, Clock: clock.RealClock{}, Metrics: m}, stops.New(stopper, clock.RealClock{}, nil),
	)}
}

// begin begins the restart of the container of a pod whose update asks for it. Its hook waits for a while.
func (s *node) begin(name string, nap int64) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Annotations: map[string]string{}}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(3600)),
		Containers:                    []corev1.Container{{Name: "main"}},
	}}
	if nap > 0 {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: nap}}}
	}
	id := s.runtime.Run(pod, "main")
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = fmt.Sprintf(`{"containers":[{"name":"main","containerID":%q,"restartCount":0,"hashes":{"plainHash":1}}]}`, id)
	pod.Annotations[contract.InPlaceUpdateStateAnnotation] = fmt.Sprintf(`{"revision":"2","restarts":{"main":%q}}`, id)
	pod.Status.Conditions = []corev1.PodCondition{{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: id}}
	require.NoError(s.t, s.server.Create(s.t.Context(), pod))
	containers, err := s.sources.Runtimes.Containers(s.t.Context(), "shop", name, nil)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop(ctx, pod, containers, id)
	cancel() // a stop outlives the pass that began it
	return pod.DeepCopy()
}

// stopped returns how many containers the runtime was told to stop.
func (s *node) stopped() int { return len(s.runtime.Calls("StopContainer")) }

// Many slow stops hold up no other one.
func TestStopsDoNotWaitForEachOther(t *testing.T) {
	s := givenNode(t)
	slow := make([]*corev1.Pod, 30)
	for i := range slow {
		slow[i] = s.begin(fmt.Sprint("slow-", i), 3000)
	}
	s.begin("quick", 0)
	await.Until(t, func(c *assert.CollectT) { assert.Equal(c, 1, s.stopped()) })
	for _, pod := range slow {
		s.stops.Forget(client.ObjectKeyFromObject(pod)) // it was deleted
	}
	s.stops.Wait()
	assert.Equal(t, 1, s.stopped(), "a stop ends with its pod")
}

// An update that is taken back during the hook leaves the container alone, whether the agent has seen it or not.
func TestARestartIsGivenUpWithItsUpdate(t *testing.T) {
	for name, tell := range map[string]func(*node, *corev1.Pod){
		"the cache has it": func(s *node, pod *corev1.Pod) {
			s.stops.Forget(client.ObjectKeyFromObject(pod))
		},
		"the cache lags":         func(*node, *corev1.Pod) {},
		"the pod is another one": func(s *node, pod *corev1.Pod) { s.replace(pod) },
		"nothing is taken back":  nil,
		"others are still updated": func(s *node, _ *corev1.Pod) {
			s.stops.Forget(types.NamespacedName{Namespace: "shop", Name: "other"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := givenNode(t)
			pod := s.begin("web", 1)
			want := 1
			if tell != nil {
				want = 0
				base := pod.DeepCopy()
				delete(pod.Annotations, contract.InPlaceUpdateStateAnnotation)
				require.NoError(t, s.server.Patch(t.Context(), pod, client.MergeFrom(base)))
				tell(s, pod)
			}
			began := time.Now()
			s.stops.Wait()
			assert.Equal(t, want, s.stopped())
			assert.Less(t, time.Since(began), await.Limit)
		})
	}
}

func (s *node) replace(pod *corev1.Pod) {
	s.t.Helper()
	require.NoError(s.t, s.server.Delete(s.t.Context(), pod))
	again := pod.DeepCopy()
	again.UID, again.ResourceVersion = "another", ""
	require.NoError(s.t, s.server.Create(s.t.Context(), again))
}
