package drain

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake" //nolint:depguard // the stories are about answers to evictions that a real server gives only by chance
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// world is a node with pods, and a server that evicts them unless it answers something else first.
type world struct {
	drain
	out     bytes.Buffer
	mutex   sync.Mutex
	answers map[string][]error // by pod, one for each try
	evicted []string
	deleted []string
	periods []*int64 // of the evictions
}

func newWorld(pods ...string) *world {
	w := &world{answers: map[string][]error{}}
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
	for _, name := range pods {
		namespace := "shop"
		if name == "budget-manager" {
			namespace = "flotilla-system"
		}
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		})
	}
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction, ok := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if !ok {
			return false, nil, nil
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if left := w.answers[eviction.Name]; len(left) > 0 {
			w.answers[eviction.Name] = left[1:]
			return true, nil, left[0]
		}
		w.evicted = append(w.evicted, eviction.Name)
		w.periods = append(w.periods, eviction.DeleteOptions.GracePeriodSeconds)
		return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), eviction.Namespace, eviction.Name)
	})
	client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion := action.(clienttesting.DeleteActionImpl)
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if left := w.answers[deletion.Name]; len(left) > 0 {
			w.answers[deletion.Name] = left[1:]
			return true, nil, left[0]
		}
		w.deleted = append(w.deleted, deletion.Name)
		w.periods = append(w.periods, deletion.DeleteOptions.GracePeriodSeconds)
		return false, nil, nil
	})
	w.drain = drain{
		streams: genericiooptions.IOStreams{Out: &w.out}, clock: clock.RealClock{}, client: &workload.Client{Core: client}, node: "node-1",
		again: time.Millisecond, look: time.Millisecond, grace: ownPeriod, dryRun: dryRunNone,
	}
	return w
}

// A webhook of an operator that moves does not answer for a while; the server is busy; etcd changes its leader.
func TestAnEvictionIsTriedAgain(t *testing.T) {
	w := newWorld("a", "b")
	w.answers["a"] = []error{
		apierrors.NewTooManyRequests("budget", 1),
		apierrors.NewInternalError(errors.New("failed calling webhook vpodeviction.kb.io: connection refused")),
		apierrors.NewServiceUnavailable("starting"), apierrors.NewTimeoutError("slow", 1),
	}

	require.NoError(t, w.run(t.Context()), w.out.String())

	assert.ElementsMatch(t, []string{"a", "b"}, w.evicted)
	assert.Contains(t, w.out.String(), "pod shop/a waits: ")
	assert.Contains(t, w.out.String(), "node/node-1 drained\n")
}

// A grace period is that of the pods, unless the user names one.
func TestTheGracePeriodOfEvictions(t *testing.T) {
	w := newWorld("a")
	require.NoError(t, w.run(t.Context()), w.out.String())
	assert.Equal(t, []*int64{nil}, w.periods)

	for _, grace := range []int64{0, 20} {
		w := newWorld("a")
		w.grace = grace
		require.NoError(t, w.run(t.Context()), w.out.String())
		assert.Equal(t, []*int64{&grace}, w.periods)
	}
}

// What a user must mend ends the drain.
func TestAnEvictionThatIsForbiddenIsAnError(t *testing.T) {
	w := newWorld("a")
	w.answers["a"] = []error{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))}

	require.ErrorContains(t, w.run(t.Context()), "evict pod shop/a: ")
	assert.Equal(t, []string{"shop/a"}, w.left(t.Context()))
}

// While other pods are evicted, the operators answer the webhooks that judge evictions.
func TestOperatorsLeaveLast(t *testing.T) {
	w := newWorld("budget-manager", "a", "b")
	w.answers["a"] = slices.Repeat([]error{apierrors.NewTooManyRequests("budget", 1)}, 20)

	require.NoError(t, w.run(t.Context()))

	require.Len(t, w.evicted, 3)
	assert.Equal(t, "budget-manager", w.evicted[2])
}

// The answer at the timeout names the pods that are left.
func TestPodsThatAreLeftAreNamed(t *testing.T) {
	w := newWorld("a", "b")
	w.answers["b"] = slices.Repeat([]error{apierrors.NewTooManyRequests("budget", 1)}, 1<<20)
	ctx, stop := context.WithCancel(t.Context())
	w.clock = stopper{Clock: w.clock, stop: stop, after: func() bool { return len(w.left(t.Context())) == 1 }}

	require.ErrorIs(t, w.run(ctx), context.Canceled)

	assert.Equal(t, []string{"shop/b"}, w.left(t.Context()))
}

// stopper ends a drain when something is so.
type stopper struct {
	clock.Clock
	stop  func()
	after func() bool
}

func (s stopper) After(d time.Duration) <-chan time.Time {
	if s.after() {
		s.stop()
	}
	return s.Clock.After(d)
}

// A PodUnavailableBudget refuses a deletion with 403 and its cause; another 403 is no refusal of a moment.
func TestADrainThatDeletesKeepsWithinBudgets(t *testing.T) {
	budget := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("budget web"))
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	w := newWorld("a", "b")
	w.disableEviction, w.grace = true, 7
	w.answers["a"] = []error{budget, apierrors.NewTooManyRequests("busy", 1)}

	require.NoError(t, w.run(t.Context()), w.out.String())

	assert.ElementsMatch(t, []string{"a", "b"}, w.deleted)
	assert.Empty(t, w.evicted)
	assert.Equal(t, int64(7), *w.periods[0])
	assert.Contains(t, w.out.String(), "pod shop/a is to be deleted\n")
	assert.Contains(t, w.out.String(), "pod shop/a waits: pods \"a\" is forbidden: budget web\n")
	w = newWorld("a")
	w.disableEviction = true
	w.answers["a"] = []error{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))}
	require.ErrorContains(t, w.run(t.Context()), "delete pod shop/a: ")
}

// Pods that the selector does not name stay, and are not among those that are left.
func TestASelectorOfPods(t *testing.T) {
	w := newWorld("a", "b")
	w.pods = labels.SelectorFromSet(labels.Set{"app": "a"})

	require.NoError(t, w.run(t.Context()), w.out.String())

	assert.Equal(t, []string{"a"}, w.evicted)
	assert.Empty(t, w.left(t.Context()))
}

// A pod whose deletion is old, as on a node that is down, is not waited for.
func TestAPodThatDoesNotEndIsSkipped(t *testing.T) {
	w := newWorld("a")
	w.options.skipAfter = time.Minute
	pod, err := w.client.Core.CoreV1().Pods("shop").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	_, err = w.client.Core.CoreV1().Pods("shop").Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)

	require.NoError(t, w.run(t.Context()), w.out.String())

	assert.Contains(t, w.out.String(), "pod shop/a stays (its deletion is older than 1m0s)\nnode/node-1 drained\n")
}

// A dry run of the server tells which pods would wait, and writes nothing.
func TestADryRunOfTheServer(t *testing.T) {
	w := newWorld("a", "b")
	var report cli.Report
	w.dryRun, w.report = dryRunServer, &report
	w.answers["a"] = []error{apierrors.NewTooManyRequests("budget web", 1)}

	require.NoError(t, w.run(t.Context()), w.out.String())

	assert.Contains(t, w.out.String(), "pod shop/a would wait: budget web\n")
	assert.NotContains(t, w.out.String(), "drained")
	for _, action := range w.client.Core.(*fake.Clientset).Actions() {
		if eviction, is := action.(clienttesting.CreateAction); is {
			assert.Equal(t, []string{metav1.DryRunAll}, eviction.GetObject().(*policyv1.Eviction).DeleteOptions.DryRun)
		}
		if patch, is := action.(clienttesting.PatchActionImpl); is {
			assert.Equal(t, []string{metav1.DryRunAll}, patch.PatchOptions.DryRun)
		}
	}
	actions := map[string]cli.Action{}
	for _, object := range report.Objects {
		actions[object.Kind+" "+object.Name] = object.Action
	}
	assert.Equal(t, map[string]cli.Action{"Node node-1": cli.Configured, "Pod a": cli.Refused, "Pod b": cli.Removed}, actions)
}

// At the timeout the report has the pods that have gone, that were refused, and that are left.
func TestTheReportOfADrain(t *testing.T) {
	w := newWorld("a", "b")
	w.answers["b"] = slices.Repeat([]error{apierrors.NewTooManyRequests("budget web", 1)}, 1<<20)
	var report cli.Report
	w.report = &report

	err := w.within(t.Context(), time.Second)

	assert.Equal(t, cli.NotSo, cli.CodeOf(err))
	require.ErrorContains(t, err, "node node-1 is not empty after 1s. To use it again: kubectl uncordon node-1. These pods are left:\n  shop/b")
	assert.Equal(t, []string{"shop/b"}, report.Left)
	assert.Contains(t, report.Objects, cli.ReportedObject{APIVersion: "v1", Kind: "Node", Name: "node-1", Action: cli.Configured, Message: "cordoned"})
	assert.Contains(t, report.Objects, cli.ReportedObject{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "a", Action: cli.Removed})
	assert.Contains(t, report.Objects, cli.ReportedObject{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "b", Action: cli.Refused, Message: "budget web"})
}

// Each flag of kubectl drain is known: it has its meaning, or the answer says what to do.
func TestTheFlagsOfKubectlDrain(t *testing.T) {
	command := NewCommand(nil, genericiooptions.IOStreams{})
	for _, name := range []string{
		"chunk-size", "delete-emptydir-data", "disable-eviction", "dry-run", "force", "grace-period", "ignore-daemonsets", "pod-selector",
		"selector", "skip-wait-for-delete-timeout", "timeout",
	} {
		assert.NotNil(t, command.Flags().Lookup(name), name)
	}
	for argument, want := range map[string]string{
		"--selector=pool=a":                 "for node in $(kubectl get nodes -o name -l 'pool=a'); do flotilla drain ${node#node/}; done",
		"--ignore-daemonsets=false":         "--ignore-daemonsets must be true",
		"--dry-run=often":                   `invalid --dry-run "often": use none, client or server`,
		"--pod-selector=a in b":             "--pod-selector: ",
		"--chunk-size=-1":                   "--chunk-size -1 is negative",
		"--skip-wait-for-delete-timeout=-1": "--skip-wait-for-delete-timeout -1 is negative",
		"--output=xml":                      `invalid argument "xml" for "-o, --output" flag: use json or yaml, or omit it for text`,
	} {
		t.Run(argument, func(t *testing.T) {
			command := NewCommand(nil, genericiooptions.IOStreams{})
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetArgs([]string{"node-1", argument})
			err := command.ExecuteContext(t.Context())
			assert.Equal(t, cli.Misused, cli.CodeOf(err))
			require.ErrorContains(t, err, want)
		})
	}
}
