package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

var now = gen.Epoch().Add(time.Hour)

type change = func(*v1beta1.PodUnavailableBudget)

func budget(changes ...change) *v1beta1.PodUnavailableBudget {
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: "web", UID: "budget", ResourceVersion: "1", Generation: 2,
	}}
	b.Status.ObservedGeneration = 2
	for _, c := range changes {
		c(b)
	}
	return b
}

func maxUnavailable(value string) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.Parse(value)) }
}

func minAvailable(value string) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.MinAvailable = new(intstr.Parse(value)) }
}

func protectedReplicas(n int32) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.ProtectTotalReplicas = &n }
}

func operations(all ...v1beta1.PubOperation) change {
	return func(b *v1beta1.PodUnavailableBudget) { b.Spec.ProtectOperations = all }
}

func targeted(b *v1beta1.PodUnavailableBudget) {
	b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
}

// numbersOf sets current and desired.
func numbersOf(current, desired int32) change {
	return func(b *v1beta1.PodUnavailableBudget) {
		b.Status.CurrentAvailable, b.Status.DesiredAvailable, b.Status.TotalReplicas = current, desired, 10
	}
}

// granted gives the pod an entry.
func granted(pod *corev1.Pod, op v1beta1.PubOperation, ago time.Duration) change {
	return func(b *v1beta1.PodUnavailableBudget) {
		current := b.Status.CurrentAvailable
		b.Status = *disruption.Record(&b.Status, pod, op, now.Add(-ago))
		b.Status.CurrentAvailable = current
	}
}

var controller = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}

// ready returns pods that are available, and that a workload owns.
func ready(n int) []*corev1.Pod { return pods("web", n, gen.Ready(gen.Epoch())) }

func pods(prefix string, n int, options ...gen.PodOption) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		pod := gen.Pod(fmt.Sprintf("%s-%03d", prefix, i), options...)
		pod.OwnerReferences = []metav1.OwnerReference{controller}
		all = append(all, pod)
	}
	return all
}

// seen returns sights of all entries that long ago.
func seen(b *v1beta1.PodUnavailableBudget, ago time.Duration) disruption.Sights {
	return disruption.Sights{}.Next(&b.Status, now.Add(-ago))
}

// compute computes twice, and checks that nothing was changed.
func compute(t *testing.T, s Snapshot) Plan {
	t.Helper()
	s.Now = now
	before := s.Budget.DeepCopy()
	p := Compute(s)
	again := Compute(s)
	require.Equal(t, p, again)
	require.True(t, equality.Semantic.DeepEqual(before, s.Budget), "the plan has changed the budget")
	return p
}

func workload(n int32) []disruption.Workload {
	return []disruption.Workload{{Name: "Deployment web", Replicas: n}}
}

func named(name string) *corev1.Pod {
	return gen.Pod(name, gen.Ready(gen.Epoch()))
}

func uid(pod *corev1.Pod, uid types.UID) *corev1.Pod {
	pod.UID = uid
	return pod
}
