package sidecarterminator_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator"
)

// The server leaves out pods that run for ever and those that have not begun, and of the others those without sidecars
// are names.
func TestOnlyPodsThatMayHaveSidecarsAreCached(t *testing.T) {
	c := env.Client(t)
	namespace := env.Namespace(t)
	named := func(name string, policy corev1.RestartPolicy) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Name, pod.Spec.RestartPolicy = name, policy }
	}
	givenPod(t, c, namespace, realNode, vars(stopped()), nil, named("service", corev1.RestartPolicyAlways))
	givenPod(t, c, namespace, realNode, nil, nil, named("plain", corev1.RestartPolicyNever))
	givenPod(t, c, namespace, realNode, vars(stopped()), nil, named("marked", corev1.RestartPolicyOnFailure))
	pending := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pending"}}
	pending.Spec.RestartPolicy = corev1.RestartPolicyNever
	pending.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	require.NoError(t, c.Create(t.Context(), pending))

	mgr := env.Manager(t)
	held, err := cache.New(env.Config, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: sidecarterminator.Pods(namespace)},
	})
	require.NoError(t, err)
	require.NoError(t, mgr.Add(held))
	informer, err := held.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	env.Start(t, mgr)
	await.Until(t, func(collect *assert.CollectT) { assert.True(collect, informer.HasSynced()) })
	store := informer.(interface{ GetStore() toolscache.Store }).GetStore()
	kept := map[string]string{}
	for _, o := range store.List() {
		kept[o.(client.Object).GetName()] = fmt.Sprintf("%T", o)
	}
	assert.Equal(t, map[string]string{"marked": "*v1.Pod", "plain": "*v1.PartialObjectMetadata"}, kept)
}

func TestTrimKeepsWhatPlansRead(t *testing.T) {
	pod := foreign(1)
	pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, variable(v1beta1.TerminateSidecarEnv, "true"))
	trimmed, err := sidecarterminator.Trim(pod)
	require.NoError(t, err)
	kept := trimmed.(*corev1.Pod)
	assert.Equal(t, corev1.RestartPolicyNever, kept.Spec.RestartPolicy)
	assert.EqualValues(t, 45, *kept.Spec.TerminationGracePeriodSeconds)
	assert.Equal(t, vars(stopped()), kept.Spec.Containers[1].Env)
	assert.Empty(t, kept.ManagedFields)
	again, err := sidecarterminator.Trim(kept)
	require.NoError(t, err)
	assert.Equal(t, trimmed, again)
}

// stubSize bounds the bytes that a pod without sidecars may cost in the cache.
const stubSize = 640

// foreign is a pod of a job as large ones are.
func foreign(i int) *corev1.Pod {
	name := fmt.Sprintf("nightly-report-%05d", i)
	pod := gen.Pod(name, gen.Label("job-name", "nightly-report"), gen.Label("app", "report"), gen.OwnedBy(gen.Pod("nightly-report")),
		gen.Image("main", "registry.example.com/shop/report:1.27.3"), gen.Image("proxy", "registry.example.com/mesh/proxy:2.1"), gen.Ready(gen.Epoch()))
	pod.Namespace, pod.UID, pod.ResourceVersion = "shop", types.UID(fmt.Sprintf("0b1d6f0e-7e0a-4d21-9f5c-%012d", i)), fmt.Sprint(90_000_000+i)
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, new(int64(45))
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", 1500))}}
	for k := range pod.Spec.Containers {
		for v := range 12 {
			pod.Spec.Containers[k].Env = append(pod.Spec.Containers[k].Env, variable(fmt.Sprint("SETTING_", v), "a value of a setting"))
		}
	}
	return pod
}

func TestAPodWithoutSidecarsCostsNextToNothing(t *testing.T) {
	const n = 20_000
	wire := make([][]byte, 1000)
	for i := range wire {
		var err error
		wire[i], err = foreign(i).Marshal()
		require.NoError(t, err)
	}
	before := inUse()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for i := range n {
		pod := &corev1.Pod{}
		require.NoError(t, pod.Unmarshal(wire[i%len(wire)]))
		pod.Name = fmt.Sprintf("nightly-report-%05d", i)
		kept, err := sidecarterminator.Trim(pod)
		require.NoError(t, err)
		require.NoError(t, store.Add(kept))
	}
	size := float64(inUse()-before) / n
	runtime.KeepAlive(store)
	runtime.KeepAlive(wire)
	t.Logf("%.0f bytes a pod, of %d that the server sends", size, len(wire[0]))
	assert.Less(t, size, float64(stubSize))
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
