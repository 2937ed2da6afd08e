package broadcastjob_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob"
)

const userAgent = "jobs-manager/broadcastjob"

// Images of the simulated nodes; others run until their pod is deleted.
const (
	succeeds = "succeeds"
	fails    = "fails"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/broadcastjobs.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme)})
}

// labelOf tells the nodes of a test from others.
func labelOf(t *testing.T) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

// givenController runs the controller until the end of the test. The environment is that of the tests, or one that
// reaches it in another way.
func givenController(t *testing.T, env testenv.Environment) client.Client {
	t.Helper()
	return givenControllerIn(t, env, "")
}

// givenControllerIn runs the controller in one namespace.
func givenControllerIn(t *testing.T, env testenv.Environment, namespace string) client.Client {
	t.Helper()
	cached := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}: fastclient.Within(namespace, broadcastjob.Pods()), &corev1.Node{}: nodes.CachedWithAllocatable(),
	})
	return env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return broadcastjob.SetUp(t.Context(), mgr, broadcastjob.Options{
			Settings: pass.Settings{Reader: reader, UserAgent: userAgent, Namespace: namespace},
		})
	})
}

// givenNodes runs simulated nodes until the end of the test, and takes them away then.
func givenNodes(t *testing.T, suffix string, n int) []string {
	t.Helper()
	env.Need(t)
	ctx, stop := context.WithCancel(t.Context())
	sim, err := simnodes.Start(ctx, env.ConfigAs(t, simnodes.UserAgent), simnodes.Options{
		Nodes: n, Prefix: labelOf(t) + suffix + "-", LeasePeriod: simnodes.NoLeases, Bind: true, CrashBackoff: 10 * time.Millisecond,
		Labels: func(int) map[string]string { return map[string]string{"test": labelOf(t)} },
		Images: map[string]simnodes.Image{succeeds: {Exits: true}, fails: {Exits: true, ExitCode: 3}},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		for _, name := range sim.Names() {
			_ = env.Client(t).Delete(context.WithoutCancel(t.Context()), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	return sim.Names()
}

// givenJob makes a job on the nodes of the test.
func givenJob(t *testing.T, c client.Client, image string, changes ...func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
	t.Helper()
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: "job"}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"test": labelOf(t)},
		Containers: []corev1.Container{{Name: "main", Image: image}},
	}
	for _, change := range changes {
		change(job)
	}
	if job.Namespace == "" {
		job.Namespace = env.Namespace(t)
	}
	require.NoError(t, c.Create(t.Context(), job))
	return job
}

// eventually reads the job until the assertions about it hold.
func eventually(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, check func(*assert.CollectT, *v1beta1.BroadcastJob)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		var now v1beta1.BroadcastJob
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(job), &now))
		check(collect, &now)
	})
}

func phase(want v1beta1.BroadcastJobPhase) func(*assert.CollectT, *v1beta1.BroadcastJob) {
	return func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		assert.Equal(collect, want, job.Status.Phase, job.Status.Message)
	}
}

// podsOf returns the pods of a job by their nodes.
func podsOf(ctx context.Context, t require.TestingT, c client.Client, job *v1beta1.BroadcastJob) map[string][]corev1.Pod {
	var list corev1.PodList
	require.NoError(t, c.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{v1beta1.BroadcastJobNameLabel: job.Name}))
	all := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		all[pod.Spec.NodeName] = append(all[pod.Spec.NodeName], pod)
	}
	return all
}

// podOn waits for the only pod of a job on a node. A status counts pods that are not on their node yet.
func podOn(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, node string) (found *corev1.Pod) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		pods := podsOf(t.Context(), collect, c, job)[node]
		require.Len(collect, pods, 1, node)
		found = &pods[0]
	})
	return found
}

// bind puts a pod on a node, and waits until the API server's cache has it there. A deletion that finds a pod without a
// node in that cache removes the pod at once, also if its node is in etcd by then.
func bind(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, pod *corev1.Pod, node string) {
	t.Helper()
	require.NoError(t, c.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}))
	podOn(t, c, job, node) // a list is as new as etcd and comes from the cache
}

// edit changes an object until the server takes it.
func edit[P client.Object](t *testing.T, c client.Client, o P, change func(P)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		change(o)
		require.NoError(collect, c.Update(t.Context(), o))
	})
}
