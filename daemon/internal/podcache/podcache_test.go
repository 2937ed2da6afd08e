package podcache_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

func TestTrimKeepsWhatPlansRead(t *testing.T) {
	barrier := podmarks.Barrier("web", 10)
	pod := gen.Pod("web", gen.Label("app", "web"), gen.OwnedBy(gen.Pod("owner")), gen.ReadinessGate(contract.KruisePodReady),
		gen.Annotation(contract.ContainerLaunchPriorityCompletedAnnotation, "true"), gen.Annotation("note", "long"),
		gen.Image("main", "app:1"), gen.Image("side", "side:1"), gen.Ready(gen.Epoch()),
		gen.Condition(corev1.PodScheduled, corev1.ConditionTrue, gen.Epoch()),
		gen.Change(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: "s"}, barrier}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy"}}
		}))
	before := pod.DeepCopy()
	trimmed, err := podcache.Trim(pod)
	require.NoError(t, err)
	assert.Equal(t, before, pod)
	kept := trimmed.(*corev1.Pod)
	assert.Equal(t, []string{pod.Name, string(pod.UID), pod.ResourceVersion}, []string{kept.Name, string(kept.UID), kept.ResourceVersion})
	assert.Equal(t, pod.OwnerReferences, kept.OwnerReferences)
	assert.Equal(t, map[string]string{contract.ContainerLaunchPriorityCompletedAnnotation: "true"}, kept.Annotations)
	assert.Empty(t, kept.Labels)
	assert.Equal(t, []corev1.Container{{Name: "main", Env: []corev1.EnvVar{barrier}}}, kept.Spec.Containers)
	assert.Equal(t, pod.Spec.ReadinessGates, kept.Spec.ReadinessGates)
	assert.Equal(t, pod.Spec.NodeName, kept.Spec.NodeName)
	assert.Len(t, kept.Status.Conditions, len(pod.Status.Conditions)-1)
	assert.Empty(t, kept.Status.InitContainerStatuses)
	assert.Len(t, kept.Status.ContainerStatuses, 2)
	assert.Equal(t, pod.Status.ContainerStatuses[0].State, kept.Status.ContainerStatuses[0].State)

	again, err := podcache.Trim(kept)
	require.NoError(t, err)
	assert.Equal(t, kept, again)

	mark := toolscache.DeletedFinalStateUnknown{Key: "default/web"}
	same, err := podcache.Trim(mark)
	require.NoError(t, err)
	assert.Equal(t, mark, same)
}

func TestOnlyPodsThatOrderConcernsAreCached(t *testing.T) {
	gate := gen.ReadinessGate(contract.KruisePodReady)
	ours := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "u", Controller: new(true)}}
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		kept bool
	}{
		"nothing asks for us":             {gen.Pod("web", gen.Image("main", "app:1"), gen.Ready(gen.Epoch())), false},
		"a gate that nobody answers":      {gen.Pod("web", gate), true},
		"a gate that its workload does":   {gen.Pod("web", gate, gen.Change(ours)), false},
		"a barrier of another pod's name": {gen.Pod("web", gen.Image("main", "app:1"), gen.Change(waits("other"))), false},
		"a barrier":                       {gen.Pod("web", gen.Image("main", "app:1"), gen.Change(waits("web"))), true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.pod.ResourceVersion = "7"
			server := &toolscache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []corev1.Pod{*tt.pod}}, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}
			informer := podcache.Filter().Limit(fastclient.CacheOptions("", nil).NewInformer)(
				toolscache.ToListWatcherWithWatchListSemantics(server, onlyLists{}), &corev1.Pod{}, 0, toolscache.Indexers{})
			go informer.RunWithContext(t.Context())
			require.True(t, toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
			assert.Equal(t, tt.kept, len(informer.GetStore().List()) == 1)
		})
	}
}

// onlyLists is a client that cannot list in a watch.
type onlyLists struct{}

func (onlyLists) IsWatchListSemanticsUnSupported() bool { return true }

func waits(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = []corev1.EnvVar{podmarks.Barrier(name, 10)} }
}
