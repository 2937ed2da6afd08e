package podunavailablebudget

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // the pace of the server matters, and nothing else of it
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

const (
	// oneWay is how long a request takes to the server.
	oneWay = 2 * time.Millisecond
	// steadily is how long disruptions are asked for.
	steadily = 5 * time.Second / 2
)

// givenServer returns a server with a budget over so many pods, which answers as slowly as a real one.
func givenServer(t *testing.T, pods int32) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1beta1.AddToScheme(scheme))
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "budget"}}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(pods - 1))
	b.Status.TotalReplicas, b.Status.CurrentAvailable, b.Status.DesiredAvailable = pods, pods, 1
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			<-time.After(oneWay)
			defer func() { <-time.After(oneWay) }()
			return c.Get(ctx, key, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			<-time.After(oneWay)
			defer func() { <-time.After(oneWay) }()
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
}

// While disruptions are granted, by this process and by another one, the budget's numbers are never older than two
// seconds; nor while a process grants that takes long to count.
func TestTheStatusIsUpToDateBesideEvictions(t *testing.T) {
	for _, tc := range []struct {
		perSecond, processes int
		planIn               time.Duration
	}{{10, 2, 4 * time.Millisecond}, {50, 2, 4 * time.Millisecond}, {100, 2, 4 * time.Millisecond}, {100, 1, 40 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%d a second, %d processes, planned in %s", tc.perSecond, tc.processes, tc.planIn), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				testSteadyEvictions(t, time.Second/time.Duration(tc.perSecond), tc.processes, tc.planIn)
			})
		})
	}
}

func testSteadyEvictions(t *testing.T, every time.Duration, processes int, planIn time.Duration) {
	t.Helper()
	const pods = 260
	server := givenServer(t, pods)
	read := func() *v1beta1.PodUnavailableBudget {
		b := &v1beta1.PodUnavailableBudget{}
		require.NoError(t, server.Get(t.Context(), types.NamespacedName{Namespace: gen.Namespace, Name: "web"}, b))
		return b
	}
	snap := plan.Snapshot{Workloads: []disruption.Workload{{Name: "Deployment web", Replicas: pods}}}
	for i := range pods {
		pod := gen.Pod(fmt.Sprint("web-", i), gen.Ready(gen.Epoch()))
		pod.UID = types.UID(pod.Name)
		snap.Pods = append(snap.Pods, pod)
	}
	ledgers := []*ledger.Ledger{{Client: server, Live: server, Clock: clock.RealClock{}}, {Client: server, Live: server, Clock: clock.RealClock{}}}
	ctx, cancel := context.WithTimeout(t.Context(), steadily)
	defer cancel()
	var asking sync.WaitGroup
	asking.Go(func() { evict(ctx, t, read(), snap.Pods, ledgers[:processes], every) })
	longest, last := time.Duration(0), time.Now()
	for ctx.Err() == nil {
		if report(t, snap, read(), ledgers[0], planIn) {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		<-time.After(50 * time.Millisecond) // the event of a write starts the next pass
	}
	longest = max(longest, time.Since(last))
	asking.Wait()
	t.Logf("the longest time without a status is %s", longest)
	assert.Less(t, longest, 2*time.Second)
	assert.NotEmpty(t, read().Status.DisruptedPods)
}

// evict asks for one pod after the other, at a steady pace, in turn one of the ledgers.
func evict(ctx context.Context, t *testing.T, b *v1beta1.PodUnavailableBudget, pods []*corev1.Pod, ledgers []*ledger.Ledger, every time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	for i := 0; ctx.Err() == nil && i < len(pods); i++ {
		all.Go(func() {
			_, err := ledgers[i%len(ledgers)].Ask(context.WithoutCancel(ctx), b, disruption.Request{Pod: pods[i], Operation: v1beta1.EvictOperation})
			assert.NoError(t, err)
		})
		<-time.After(every)
	}
	all.Wait()
}

// report writes the status as a pass does, and reports whether the server has it.
func report(t *testing.T, snap plan.Snapshot, b *v1beta1.PodUnavailableBudget, l *ledger.Ledger, planIn time.Duration) bool {
	t.Helper()
	snap.Budget, snap.Now = b, time.Now()
	snap.Sights = snap.Sights.Next(&b.Status, snap.Now)
	<-time.After(planIn)
	pass := passOf(snap, plan.Compute(snap))
	after := pass.Status(action.Failures{})
	_, err := l.Through(t.Context(), b, func(newest client.Object) client.Object {
		if newest.GetResourceVersion() != b.ResourceVersion {
			<-time.After(planIn)
			after, _ = pass.Renew(newest)
		}
		if counted, ok := after.(*v1beta1.PodUnavailableBudget); ok {
			counted.Status.TotalReplicas = b.Status.TotalReplicas + 1 // each pass has something to write
		}
		return after
	})
	return err == nil
}
