package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/admission"
)

// option changes a request under construction.
type option func(*v1beta1.ContainerRecreateRequest)

// request returns what a user sends for container main of pod web.
func request(options ...option) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "again"},
		Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: "web", Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
	}
	for _, o := range options {
		o(r)
	}
	return r
}

func containers(names ...string) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Spec.Containers = nil
		for _, name := range names {
			r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerToRecreate{Name: name})
		}
	}
}

func first(change func(*v1beta1.ContainerToRecreate)) option {
	return func(r *v1beta1.ContainerRecreateRequest) { change(&r.Spec.Containers[0]) }
}

func strategy(s v1beta1.RecreateStrategy) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Strategy = &s }
}

// pod returns pod web with containers main and log, which run, sidecar proxy, init container setup, ephemeral container
// debug, and container new, which has not been created yet.
func pod(options ...gen.PodOption) *corev1.Pod {
	o := gen.Pod("web", append([]gen.PodOption{gen.Image("main", "app:1"), gen.Image("log", "log:1"), gen.Image("new", "new:1"), gen.Ready(gen.Epoch())}, options...)...)
	o.Spec.TerminationGracePeriodSeconds = new(int64(45))
	o.Spec.InitContainers = []corev1.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	o.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	o.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "log", ContainerID: "containerd://l", RestartCount: 2}, {Name: "main", ContainerID: "containerd://m"}, {Name: "new"},
	}
	o.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", ContainerID: "containerd://s"}, {Name: "proxy", ContainerID: "containerd://p", RestartCount: 1}}
	return o
}

func target(options ...gen.PodOption) admission.Target {
	return admission.Target{Pod: pod(options...), NodeFound: true}
}

func TestValidate(t *testing.T) {
	cases := []struct {
		name    string
		request *v1beta1.ContainerRecreateRequest
		want    []string
	}{
		{"the least", request(), nil},
		{"everything", request(strategy(v1beta1.RecreateStrategy{
			FailurePolicy: "Ignore", OrderedRecreate: true, ForceRecreate: true, MinStartedSeconds: 1,
			TerminationGracePeriodSeconds: new(int64(0)), UnreadyGracePeriodSeconds: new(int64(0)),
		}), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.ActiveDeadlineSeconds, r.Spec.TTLSecondsAfterFinished = new(int64(3)), new(int32(0))
		}), nil},
		{"nothing", &v1beta1.ContainerRecreateRequest{}, []string{
			"spec.podName: Required value", "spec.containers: Required value: name at least one container",
		}},
		{"numbers", request(strategy(v1beta1.RecreateStrategy{
			MinStartedSeconds: -1, TerminationGracePeriodSeconds: new(int64(-1)), UnreadyGracePeriodSeconds: new(int64(-1)),
		}), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.ActiveDeadlineSeconds, r.Spec.TTLSecondsAfterFinished = new(int64(2)), new(int32(-1))
		}), []string{
			"spec.activeDeadlineSeconds: Invalid value: 2: must be at least 3",
			"spec.ttlSecondsAfterFinished: Invalid value: -1: must be 0 or more",
			"spec.strategy.terminationGracePeriodSeconds: Invalid value: -1: must be 0 or more",
			"spec.strategy.unreadyGracePeriodSeconds: Invalid value: -1: must be 0 or more",
			"spec.strategy.minStartedSeconds: Invalid value: -1: must be 0 or more",
		}},
		{"a policy", request(strategy(v1beta1.RecreateStrategy{FailurePolicy: "Retry"})), []string{
			`spec.strategy.failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"`,
		}},
		{"a container twice", request(containers("main", "log", "main")), []string{`spec.containers[2].name: Duplicate value: "main"`}},
		{"a container without a name", request(containers("")), []string{"spec.containers[0].name: Required value"}},
		{"what the system fills", request(first(func(c *v1beta1.ContainerToRecreate) {
			c.StatusContext, c.PreStop, c.Ports = &v1beta1.ContainerStatusContext{}, &v1beta1.PreStopHandler{}, []corev1.ContainerPort{}
		})), []string{
			"spec.containers[0].preStop: Forbidden: filled by the system", "spec.containers[0].ports: Forbidden: filled by the system",
			"spec.containers[0].statusContext: Forbidden: filled by the system",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, err := range admission.Validate(c.request) {
				got = append(got, err.Error())
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestFillRefuses(t *testing.T) {
	cases := []struct {
		name    string
		request *v1beta1.ContainerRecreateRequest
		target  admission.Target
		want    string
	}{
		{"no pod", request(), admission.Target{}, `spec.podName: Invalid value: "web": pod "web" not found in namespace "default"`},
		{"a pod without a node", request(), target(gen.Change(func(pod *corev1.Pod) { pod.Spec.NodeName = "" })), `spec.podName: Invalid value: "web": pod "web" is not scheduled yet`},
		{"no node", request(), admission.Target{Pod: pod()}, `spec.podName: Invalid value: "web": the node of pod "web" was not found`},
		{"a pod that is over", request(), target(gen.Phase(corev1.PodSucceeded)), `pod "web" is not active (phase Succeeded)`},
		{"a pod that has failed", request(), target(gen.Phase(corev1.PodFailed)), `pod "web" is not active (phase Failed)`},
		{"a pod that is going", request(), target(gen.Terminating()), `pod "web" is not active (it is being deleted)`},
		{"a pod that is going with its sidecars", request(), target(gen.Terminating(), gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, gen.Epoch())), "it is being deleted"},
		{"a static pod", request(), target(gen.Annotation(corev1.MirrorPodAnnotationKey, "x")), `pod "web" is a static pod`},
		{"a pod with a long queue", request(), admission.Target{Pod: pod(), NodeFound: true, Open: 16}, `spec.podName: Forbidden: pod "web" has 16 ContainerRecreateRequests ` +
			`that are not completed, of at most 16: wait until some complete, or delete those that are not needed; kubectl get crr -l crr.apps.kruise.io/pod-uid=` + string(gen.UID("web")) + ` lists them`},
		{"a pod with a long queue whose sidecars end", request(), admission.Target{
			Pod: pod(gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, gen.Epoch())), NodeFound: true, Open: 17,
		}, "17 ContainerRecreateRequests that are not completed, of at most 16"},
		{"no container", request(containers("main", "db")), target(), `spec.containers[1].name: Invalid value: "db": pod has no container "db"`},
		{"an init container", request(containers("setup")), target(), `spec.containers[0].name: Invalid value: "setup": container "setup" is an init container, which runs once`},
		{"an ephemeral container", request(containers("debug")), target(), `container "debug" is an ephemeral container, which runs once`},
		{"a container to come", request(containers("new")), target(), `spec.containers[0].name: Invalid value: "new": container "new" has not been created yet, nothing to recreate`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, admission.Fill(c.request, c.target).ToAggregate(), c.want)
		})
	}
	blank := target()
	blank.Pod.Status.ContainerStatuses = nil
	require.ErrorContains(t, admission.Fill(request(), blank).ToAggregate(), "has not been created yet")
}

func TestFill(t *testing.T) {
	hook := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	given := target(gen.Change(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle, pod.Spec.Containers[0].Ports = &corev1.Lifecycle{PreStop: hook}, ports
		pod.Spec.Containers[1].Lifecycle, pod.Spec.Containers[1].Ports = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3}}}, ports
	}))
	before := given.Pod.DeepCopy()
	r := request(containers("main", "log", "proxy"), func(r *v1beta1.ContainerRecreateRequest) {
		r.Labels = map[string]string{v1beta1.PodUIDLabel: "forged", "mine": "stays"}
	})
	require.Empty(t, admission.Fill(r, given))
	assert.Equal(t, before, given.Pod)
	assert.Equal(t, map[string]string{
		v1beta1.PodUIDLabel: string(given.Pod.UID), v1beta1.NodeNameLabel: "node-1", v1beta1.ActiveLabel: "true", "mine": "stays",
	}, r.Labels)
	assert.Equal(t, &v1beta1.RecreateStrategy{FailurePolicy: v1beta1.FailurePolicyFail, TerminationGracePeriodSeconds: new(int64(45))}, r.Spec.Strategy)
	assert.Equal(t, []v1beta1.ContainerToRecreate{
		{Name: "main", PreStop: &v1beta1.PreStopHandler{HTTPGet: hook.HTTPGet}, Ports: ports, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://m"}},
		{Name: "log", PreStop: &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 3}}, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://l", RestartCount: 2}},
		{Name: "proxy", StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://p", RestartCount: 1}},
	}, r.Spec.Containers)

	waits := given
	waits.Open = 15
	require.Empty(t, admission.Fill(request(), waits))

	chosen := v1beta1.RecreateStrategy{FailurePolicy: v1beta1.FailurePolicyIgnore, TerminationGracePeriodSeconds: new(int64(1))}
	r = request(strategy(chosen))
	require.Empty(t, admission.Fill(r, given))
	assert.Equal(t, &chosen, r.Spec.Strategy, "what is said stays")
}

func TestFillOfUnusualPods(t *testing.T) {
	virtual := target()
	virtual.NodeLabels = map[string]string{v1beta1.NodeTypeLabel: v1beta1.VirtualKubelet}
	r := request()
	require.Empty(t, admission.Fill(r, virtual))
	assert.Equal(t, v1beta1.VirtualKubelet, r.Labels[v1beta1.NodeTypeLabel])
	assert.Equal(t, []string{`node "node-1" is virtual and has no node agent to recreate containers`}, admission.Warnings(r, virtual.Pod))

	sidecars := target(gen.Phase(corev1.PodSucceeded), gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, gen.Epoch()))
	assert.Empty(t, admission.Fill(request(), sidecars), "its sidecars still run")
}

func TestWarnings(t *testing.T) {
	never := gen.Change(func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever })
	r := request(containers("main", "proxy"))
	assert.Empty(t, admission.Warnings(r, pod()))
	assert.Empty(t, admission.Warnings(r, nil))
	assert.Equal(t, []string{`container "main" will be stopped and not started again: its restart policy is Never`}, admission.Warnings(r, pod(never)))
	assert.Empty(t, admission.Warnings(r, pod(never, gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, gen.Epoch()))), "who asks knows that")
	onFailure := gen.Change(func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
	assert.Equal(t, []string{`container "main" stays stopped if it ends with code 0: its restart policy is OnFailure, and a Job counts that as success`},
		admission.Warnings(r, pod(onFailure)))
	hookTo := func(host string) gen.PodOption {
		return gen.Change(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: host}}}
		})
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		assert.Equal(t, []string{`container "main" will be stopped without its preStop hook: the node agent cannot reach host "` + host + `", which is the node itself`},
			admission.Warnings(r, pod(hookTo(host))))
	}
	assert.Empty(t, admission.Warnings(r, pod(hookTo(""))))
	assert.Empty(t, admission.Warnings(r, pod(hookTo("10.0.0.7"))))
	assert.Empty(t, admission.Warnings(r, pod(never, gen.Change(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}))))
}

func TestFrozen(t *testing.T) {
	filled := func(options ...option) *v1beta1.ContainerRecreateRequest {
		r := request()
		r.Labels = map[string]string{v1beta1.PodUIDLabel: "u", v1beta1.NodeNameLabel: "n", v1beta1.ActiveLabel: "true"}
		for _, o := range options {
			o(r)
		}
		return r
	}
	grace := func(second int) option {
		return func(r *v1beta1.ContainerRecreateRequest) {
			r.Status.Conditions = []metav1.Condition{{
				Type: v1beta1.PreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(gen.Epoch().Add(time.Duration(second) * time.Second)),
			}}
		}
	}
	cases := []struct {
		name     string
		old, now *v1beta1.ContainerRecreateRequest
		version  string
		want     string
	}{
		{"nothing", filled(), filled(), "v1beta1", ""},
		{"label active and finalizers", filled(), filled(func(r *v1beta1.ContainerRecreateRequest) {
			delete(r.Labels, v1beta1.ActiveLabel)
			r.Finalizers = []string{v1beta1.UnreadyAcquiredFinalizer}
		}), "v1beta1", ""},
		{"the spec", filled(), filled(containers("log")), "v1beta1", "spec: is immutable: create another request"},
		{"the pod", filled(), filled(func(r *v1beta1.ContainerRecreateRequest) { r.Labels[v1beta1.PodUIDLabel] = "other" }), "v1beta1", "metadata.labels[crr.apps.kruise.io/pod-uid]"},
		{"the node", filled(), filled(func(r *v1beta1.ContainerRecreateRequest) { delete(r.Labels, v1beta1.NodeNameLabel) }), "v1alpha1", "metadata.labels[crr.apps.kruise.io/node-name]"},
		{"the time of the grace", filled(grace(1)), filled(grace(2)), "v1alpha1", "metadata.annotations[crr.apps.kruise.io/unready-acquired]"},
		{"the grace is taken away", filled(grace(1)), filled(), "v1alpha1", "metadata.annotations[crr.apps.kruise.io/unready-acquired]"},
		{"the grace begins", filled(), filled(grace(1)), "v1alpha1", ""},
		{"the status is no matter here", filled(grace(1)), filled(), "v1beta1", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := admission.ForbiddenChange(c.now, c.old, c.version)
			if c.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.True(t, strings.HasPrefix(got, c.want), got)
		})
	}
}
