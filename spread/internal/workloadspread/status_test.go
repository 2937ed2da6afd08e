package workloadspread

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientevents "k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // the story is about moments that a real server gives only by chance
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/controllers/status"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

const (
	oneWay = 2 * time.Millisecond // of a request
	podLag = 3 * time.Millisecond // of the cache
	planIn = 4 * time.Millisecond // read and plan
	runFor = 5 * time.Second      // of a pod
)

// crowd is a Job's pods that come at a steady rate and run for some seconds, and the webhook that gives them places.
// Time is simulated, and passes with requests.
type crowd struct {
	*testing.T
	*rand.Rand
	client.WithWatch
	clock  *clocktesting.FakeClock
	every  time.Duration
	next   time.Time
	limits []int32
	pods   map[string]*corev1.Pod
	names  int
	got    map[string]int
	ours   int // statuses that the controller has written
}

func newCrowd(t *testing.T, perSecond int) *crowd {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1beta1.AddToScheme(scheme))
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "web", Generation: 1}}
	most := perSecond * int(runFor/time.Second) * 3 / 2
	s.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a", MaxReplicas: new(intstr.FromInt(most))}, {Name: "b"}}
	c := &crowd{T: t, Rand: rand.New(rand.NewPCG(1, 0)), clock: clocktesting.NewFakeClock(gen.Epoch()), pods: map[string]*corev1.Pod{},
		got: map[string]int{}, every: time.Second / time.Duration(perSecond), limits: subsets.Limits(s, nil)}
	c.next = c.clock.Now()
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).WithStatusSubresource(s).Build()
	return c
}

// slow is the server as the controller meets it.
func (c *crowd) slow() client.WithWatch {
	return interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			c.pass(oneWay)
			defer c.pass(oneWay)
			err := c.SubResource(sub).Patch(ctx, o, p, opts...)
			if err == nil {
				c.ours++
			}
			return err
		},
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			c.pass(oneWay)
			defer c.pass(oneWay)
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// pass lets time pass: pods come and end.
func (c *crowd) pass(d time.Duration) {
	end := c.clock.Now().Add(d)
	for !c.next.After(end) {
		c.clock.SetTime(c.next)
		c.admit()
		c.next = c.next.Add(time.Duration(c.Int64N(int64(2 * c.every))))
	}
	c.clock.SetTime(end)
	maps.DeleteFunc(c.pods, func(_ string, pod *corev1.Pod) bool { return end.Sub(pod.CreationTimestamp.Time) > runFor })
}

func (c *crowd) stored() *v1beta1.WorkloadSpread {
	s := &v1beta1.WorkloadSpread{}
	require.NoError(c, c.Get(c.Context(), types.NamespacedName{Namespace: gen.Namespace, Name: "web"}, s))
	return s
}

// admit gives a new pod a place, as a replica of the webhook that meets no conflict.
func (c *crowd) admit() {
	c.names++
	pod := gen.Pod("p"+strconv.Itoa(c.names), gen.Created(c.clock.Now()))
	s := c.stored()
	books := subsets.Open(s, c.limits)
	i := books.Ledger(v1beta1.VersionIgnored).Admit(pod.Name, metav1.NewTime(c.clock.Now()), func(string) bool { return false })
	if books.Close() {
		require.NoError(c, c.Status().Update(c.Context(), s))
	}
	subset := s.Spec.Subsets[i].Name
	c.got[subset]++
	gen.Annotation(v1beta1.MatchedAnnotation, fmt.Sprintf(`{"name":"web","subset":%q}`, subset))(pod)
	c.pods[pod.Name] = pod
}

// Written implements status.Recorder.
func (c *crowd) Written(types.NamespacedName, client.Object) {}

// Places that are taken steadily keep nobody from counting the pods: the status is never older than two seconds, and no
// pod goes to a later subset while there is room.
func TestTheStatusKeepsUpWithAdmission(t *testing.T) {
	for _, perSecond := range []int{10, 50, 100} {
		t.Run(strconv.Itoa(perSecond), func(t *testing.T) {
			c := newCrowd(t, perSecond)
			server, memory := c.slow(), &refusals.Tracker{}
			executor, err := execute.New(execute.Options{
				Client: server, Live: server, Metrics: prometheus.NewRegistry(), Controller: "test", Refusals: memory, Clock: c.clock,
			})
			require.NoError(t, err)
			controller := &pass.Controller{
				Client: server, Live: server, Refusals: memory, Executor: executor, Status: status.Writer{Client: server, Recorder: c},
				Events: events.NewRecorder(clientevents.NewFakeRecorder(10000), server.Scheme(), c.clock), Clock: c.clock,
			}
			last, longest := c.clock.Now(), time.Duration(0)
			for c.clock.Since(gen.Epoch()) < 20*time.Second {
				s, pods, before := c.stored(), slices.Collect(maps.Values(c.pods)), c.ours
				c.pass(podLag + planIn)
				_, err := controller.Run(t.Context(), passOf(s, plan.Compute(plan.Snapshot{
					Spread: s, Pods: pods, Pause: time.Minute, Now: c.clock.Now(), Target: plan.Target{Latest: v1beta1.VersionIgnored},
				})))
				require.NoError(t, err)
				longest = max(longest, c.clock.Since(last))
				if c.ours > before {
					last = c.clock.Now()
				}
				c.pass(pause) // the event of a pod, or of its place, starts the next pass
			}
			assert.Less(t, longest, 2*time.Second)
			assert.Zero(t, c.got["b"], "there is room in a")
			t.Logf("%d pods, at most %v without a status", c.got["a"], longest)
		})
	}
}
