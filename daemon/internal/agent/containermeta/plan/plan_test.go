package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Hashes that are published with the format of the annotation.
const (
	nginxHash   = 436018172  // {"image":"nginx:1.25","name":"main"}
	noEnvHash   = 86995377   // null
	configV1    = 4274367333 // [{"name":"APP_CONFIG","value":"v1"}]
	configUnset = 225531427  // [{"name":"APP_CONFIG"}]
)

// pod has the containers main, which reads annotation app-config, and side, which reads nothing. Its
// statuses are sorted in another way than its spec.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Annotations: map[string]string{"app-config": "v1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "side", Image: "side:1"},
			{Name: "main", Image: "nginx:1.25", Env: []corev1.EnvVar{{Name: "APP_CONFIG", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['app-config']"},
			}}}},
		}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", ContainerID: "containerd://m1"}, {Name: "side", ContainerID: "containerd://s1"},
		}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func updating(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse}}
}

func running() []plan.Container {
	return []plan.Container{
		{Name: "side", ID: "containerd://s1", Hash: 5, Running: true},
		{Name: "main", ID: "containerd://m1", Hash: nginxHash, RestartCount: 2, Running: true, Env: map[string]string{"APP_CONFIG": "v1", "SECRET": "x"}},
		{Name: "main", ID: "containerd://m0", Hash: 7, RestartCount: 1},
	}
}

const reported = `{"containers":[` +
	`{"name":"main","containerID":"containerd://m1","restartCount":2,"hashes":{"plainHash":436018172,"extractedEnvFromMetadataHash":4274367333}},` +
	`{"name":"side","containerID":"containerd://s1","restartCount":0,"hashes":{"plainHash":5,"extractedEnvFromMetadataHash":86995377}}]}`

func withAnnotation(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[contract.RuntimeContainersMetaAnnotation] = text }
}

// compute makes the plan twice and checks that nothing was changed by it.
func compute(t *testing.T, s plan.Snapshot) plan.Plan {
	t.Helper()
	if s.Now.IsZero() {
		s.Now = now
	}
	before := s.Pod.DeepCopy()
	first := plan.Compute(s)
	assert.Equal(t, first, plan.Compute(s), "the same input gives the same plan")
	assert.Equal(t, before, s.Pod, "the snapshot is left alone")
	return first
}

func TestTheAnnotationHasThePublishedForm(t *testing.T) {
	p := compute(t, plan.Snapshot{Pod: pod(), Containers: running(), EnvFromMetadata: true})
	assert.Equal(t, reported, p.Annotation)
	assert.Empty(t, p.Stop)
	assert.Zero(t, p.RequeueAfter)

	done := pod(withAnnotation(reported))
	p = compute(t, plan.Snapshot{Pod: done, Containers: running(), EnvFromMetadata: true})
	assert.Empty(t, p.Annotation, "what is written is not written again")

	meta, err := agentreport.Read(done)
	require.NoError(t, err)
	assert.Equal(t, uint64(configV1), meta.Containers[0].Hashes.ExtractedEnvFromMetadataHash)
	assert.Equal(t, uint64(noEnvHash), meta.Containers[1].Hashes.ExtractedEnvFromMetadataHash)
}

func TestWithoutTheGateNoEnvironmentIsHashed(t *testing.T) {
	s := plan.Snapshot{Pod: pod(updating), Containers: running()}
	assert.NotContains(t, compute(t, s).Annotation, "extractedEnvFromMetadataHash")
	assert.Empty(t, plan.NeedEnv(s))
}

func TestAVariableThatIsNotSetCountsAsEmpty(t *testing.T) {
	containers := running()
	containers[1].Env = map[string]string{}
	p := compute(t, plan.Snapshot{Pod: pod(), Containers: containers, EnvFromMetadata: true})
	assert.Contains(t, p.Annotation, "225531427")
	assert.Equal(t, 225531427, configUnset)
}

func TestEnvironmentsAreReadOnceForEachContainer(t *testing.T) {
	s := plan.Snapshot{Pod: pod(), Containers: running(), EnvFromMetadata: true}
	assert.Equal(t, []string{"containerd://m1"}, plan.NeedEnv(s), "side reads no metadata, m0 does not run")
	s.Pod = pod(withAnnotation(reported))
	assert.Empty(t, plan.NeedEnv(s))
}

func TestAnEnvironmentThatCannotBeReadIsAskedForAgain(t *testing.T) {
	containers := running()
	containers[1].Env = nil
	p := compute(t, plan.Snapshot{Pod: pod(updating), Containers: containers, EnvFromMetadata: true})
	assert.Contains(t, p.Annotation, `"plainHash":436018172}`, "the rest is reported")
	assert.Equal(t, 3*time.Second, p.RequeueAfter)
	assert.Empty(t, p.Stop)
	s := plan.Snapshot{Pod: pod(withAnnotation(p.Annotation)), Containers: running(), EnvFromMetadata: true}
	assert.Equal(t, []string{"containerd://m1"}, plan.NeedEnv(s))
	assert.Equal(t, reported, compute(t, s).Annotation)
}

// Some images and runtimes never tell an environment: each look costs the node an exec.
func TestThePausesBetweenLooksAtAnEnvironmentGrow(t *testing.T) {
	containers := running()
	containers[1].Env = nil
	s := plan.Snapshot{Pod: pod(withAnnotation(`{"containers":[]}`)), Containers: containers, EnvFromMetadata: true, Now: time.Unix(0, 0)}
	var pauses []time.Duration
	told := 0
	for range 20 {
		assert.Equal(t, []string{"containerd://m1"}, plan.NeedEnv(s))
		p := compute(t, s)
		for _, notice := range p.Notices {
			assert.Equal(t, plan.EventEnvironmentUnknown, notice.Reason)
			assert.Contains(t, notice.Note, "container main")
			told++
		}
		s.Unread = p.Unread
		pauses = append(pauses, p.RequeueAfter)
		s.Now = s.Now.Add(p.RequeueAfter - time.Second)
		assert.Empty(t, plan.NeedEnv(s))
		assert.Equal(t, time.Second, compute(t, s).RequeueAfter)
		s.Now = s.Now.Add(time.Second)
	}
	assert.Equal(t, 1, told)
	assert.Equal(t, []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second}, pauses[:3])
	assert.Equal(t, 10*time.Minute, pauses[19])

	s.Pod, s.Containers = pod(), running()
	assert.Empty(t, compute(t, s).Unread, "what was read is known")
}

func TestOnlyContainersThatRuntimeAndStatusKnowAreReported(t *testing.T) {
	p := pod(withAnnotation(reported))
	p.Status.ContainerStatuses[0].ContainerID = "containerd://m2"
	assert.Equal(t, `{"containers":[{"name":"side","containerID":"containerd://s1","restartCount":0,"hashes":{"plainHash":5,"extractedEnvFromMetadataHash":86995377}}]}`,
		compute(t, plan.Snapshot{Pod: p, Containers: running(), EnvFromMetadata: true}).Annotation)
	p.Status.ContainerStatuses = nil
	assert.Empty(t, compute(t, plan.Snapshot{Pod: p, Containers: running(), EnvFromMetadata: true}).Annotation, "nothing runs yet")
	broken := pod(withAnnotation("{"))
	assert.Equal(t, reported, compute(t, plan.Snapshot{Pod: broken, Containers: running(), EnvFromMetadata: true}).Annotation)
}

// A pod with a container that cannot be started has nothing to be told of. The empty list says that the agent would
// restart it, so that the workload may update the pod in place.
func TestAContainerThatCannotBeStartedIsReportedAsNone(t *testing.T) {
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
			}
		}
	}
	stuck := plan.Snapshot{Pod: pod(waiting("ImagePullBackOff")), EnvFromMetadata: true, Now: now}
	assert.JSONEq(t, `{"containers":[]}`, compute(t, stuck).Annotation)
	stuck.Pod.Annotations[contract.RuntimeContainersMetaAnnotation] = compute(t, stuck).Annotation
	assert.Empty(t, compute(t, stuck).Annotation, "once")

	for name, s := range map[string]plan.Snapshot{
		"about to start":                  {Pod: pod(waiting("ContainerCreating")), EnvFromMetadata: true, Now: now},
		"about to be initialized":         {Pod: pod(waiting("PodInitializing")), EnvFromMetadata: true, Now: now},
		"environments are not looked at":  {Pod: pod(waiting("ImagePullBackOff")), Now: now},
		"none of them reads any metadata": {Pod: pod(waiting("ImagePullBackOff"), func(p *corev1.Pod) { p.Spec.Containers[1].Env = nil }), EnvFromMetadata: true, Now: now},
	} {
		assert.Empty(t, compute(t, s).Annotation, name)
	}
}

// sidecars puts side among the init containers, as a native sidecar, after one that ends.
func sidecars(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:1"}, p.Spec.Containers[0]}
	p.Spec.InitContainers[1].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	p.Spec.Containers = p.Spec.Containers[1:]
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", ContainerID: "containerd://u1"}, p.Status.ContainerStatuses[1]}
	p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1]
}

func TestNativeSidecarsAreReportedLastAndRestarted(t *testing.T) {
	containers := append(running(), plan.Container{Name: "setup", ID: "containerd://u1"})
	s := plan.Snapshot{Pod: pod(sidecars), Containers: containers, EnvFromMetadata: true}
	assert.Equal(t, reported, compute(t, s).Annotation)

	s.Pod = pod(sidecars, withAnnotation(reported), updating, asked(`{"side":"containerd://s1","setup":"containerd://u1"}`))
	first := compute(t, s)
	s.Now, s.Outdated = now.Add(15*time.Second), first.Outdated // the kubelet has its turn
	assert.Equal(t, []string{"containerd://s1"}, compute(t, s).Stop)
}

// What reads metadata cannot start before a native sidecar whose image cannot be pulled.
func TestANativeSidecarThatCannotBeStartedIsReportedAsNone(t *testing.T) {
	stuck := pod(sidecars)
	stuck.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
	for name, want := range map[string]string{"setup": "", "side": `{"containers":[]}`} {
		stuck.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
		}
		assert.Equal(t, want, compute(t, plan.Snapshot{Pod: stuck, EnvFromMetadata: true, Now: now}).Annotation, name)
	}
}

func changed(p *corev1.Pod) { p.Annotations["app-config"] = "v2" }

func TestAChangedValueRestartsItsReadersDuringAnInPlaceUpdate(t *testing.T) {
	s := plan.Snapshot{Pod: pod(withAnnotation(reported), updating, changed), Containers: running(), EnvFromMetadata: true}
	p := compute(t, s)
	assert.Empty(t, p.Stop, "not at once")
	assert.Equal(t, 3*time.Second, p.RequeueAfter)

	s.Outdated, s.Now = p.Outdated, now.Add(3*time.Second)
	p = compute(t, s)
	assert.Equal(t, []string{"containerd://m1"}, p.Stop)
	assert.Equal(t, 6*time.Second, p.RequeueAfter)

	s.Outdated, s.Now = p.Outdated, now.Add(4*time.Second)
	p = compute(t, s)
	assert.Empty(t, p.Stop, "one stop is enough")
	assert.Equal(t, 5*time.Second, p.RequeueAfter)

	s.Outdated, s.Now = p.Outdated, now.Add(9*time.Second)
	p = compute(t, s)
	assert.Equal(t, []string{"containerd://m1"}, p.Stop, "unless it has no effect")
	assert.Equal(t, 12*time.Second, p.RequeueAfter)

	s.Containers[1].Running = false
	assert.Empty(t, compute(t, s).Stop)
	assert.Equal(t, 1, compute(t, s).Outdated["main"].Stops, "its next run does not begin from nothing")
}

// asked is a pod whose update restarts containers as they are.
func asked(restarts string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations[contract.InPlaceUpdateStateAnnotation] = `{"revision":"web-2","restarts":` + restarts + `}`
	}
}

func TestAContainerIsRestartedThatItsUpdateNamesByID(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"one":                 {pod(withAnnotation(reported), updating, asked(`{"main":"containerd://m1"}`)), []string{"containerd://m1"}},
		"done":                {pod(withAnnotation(reported), updating, asked(`{"main":"containerd://m0"}`)), nil},
		"in service":          {pod(withAnnotation(reported), asked(`{"main":"containerd://m1"}`)), nil},
		"by another name":     {pod(withAnnotation(reported), updating, asked(`{"side":"containerd://m1"}`)), nil},
		"with a new value":    {pod(withAnnotation(reported), updating, changed, asked(`{"main":"containerd://m1"}`)), []string{"containerd://m1"}},
		"an unreadable state": {pod(withAnnotation(reported), updating, asked(`7`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := plan.Snapshot{Pod: c.pod, Containers: running(), EnvFromMetadata: true, Now: now}
			first := compute(t, s)
			assert.Empty(t, first.Stop, "not at once")
			s.Now, s.Outdated = now.Add(3*time.Second), first.Outdated
			assert.Equal(t, c.want, compute(t, s).Stop)
			s.EnvFromMetadata = false
			assert.Empty(t, compute(t, s).Stop, "without the feature gate")
		})
	}
}

func TestTheDistanceOfStopsIsBounded(t *testing.T) {
	s := plan.Snapshot{
		Pod: pod(withAnnotation(reported), updating, changed), Containers: running(), EnvFromMetadata: true,
		Outdated: map[string]plan.Outdated{"main": {Since: now, Stops: 60, Next: now}},
	}
	assert.Equal(t, 10*time.Minute, compute(t, s).RequeueAfter)
}

func TestNothingIsRestartedOutsideAnInPlaceUpdate(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"no condition": func(*corev1.Pod) {},
		"over": func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionTrue}}
		},
		"another condition": func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		},
		"another key": func(p *corev1.Pod) {
			updating(p)
			p.Annotations["app-config"], p.Annotations["other"] = "v1", "x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := compute(t, plan.Snapshot{
				Pod: pod(withAnnotation(reported), changed, change), Containers: running(), EnvFromMetadata: true, Now: now.Add(time.Hour),
				Outdated: map[string]plan.Outdated{"main": {Since: now, Next: now}},
			})
			assert.Empty(t, p.Stop)
			assert.Empty(t, p.Outdated)
		})
	}
}

func TestTheKubeletHasItsTurnWhereTheImageChangesToo(t *testing.T) {
	image := func(p *corev1.Pod) { p.Spec.Containers[1].Image = "nginx:1.26" }
	s := plan.Snapshot{Pod: pod(withAnnotation(reported), updating, changed, image), Containers: running(), EnvFromMetadata: true}
	p := compute(t, s)
	assert.Empty(t, p.Stop)
	assert.Equal(t, 15*time.Second, p.RequeueAfter)
	s.Outdated, s.Now = p.Outdated, now.Add(14*time.Second)
	assert.Empty(t, compute(t, s).Stop)
	s.Now = now.Add(15 * time.Second)
	assert.Equal(t, []string{"containerd://m1"}, compute(t, s).Stop, "a kubelet that was replaced never does it")
}

func TestWhichPodsAreReported(t *testing.T) {
	assert.True(t, plan.NeedsAnnotation(pod()))
	plain := pod(func(p *corev1.Pod) { p.OwnerReferences = nil })
	assert.False(t, plan.NeedsAnnotation(plain))
	assert.False(t, plan.NeedsAnnotation(pod(func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "apps/v1" })))
	assert.False(t, plan.NeedsAnnotation(pod(func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })))
	plain.Annotations[contract.RuntimeContainersMetaAnnotation] = ""
	assert.True(t, plan.NeedsAnnotation(plain), "asked for")
	assert.True(t, plan.NeedsAnnotation(pod(func(p *corev1.Pod) {
		p.OwnerReferences, p.Annotations["kruise.io/sidecarset-hash"] = nil, "{}"
	})))
}

// A container whose environment never becomes what the pod says is restarted with growing pauses, run after run.
func TestRunsThatNeverMatchArePausedFor(t *testing.T) {
	p := pod(updating, changed)
	s := plan.Snapshot{Pod: p, EnvFromMetadata: true, Now: now}
	run, stops := 1, 0
	for range 600 {
		id := fmt.Sprintf("containerd://m%d", run)
		p.Status.ContainerStatuses[0].ContainerID = id
		s.Containers = []plan.Container{
			{Name: "side", ID: "containerd://s1", Hash: 5, Running: true},
			{Name: "main", ID: id, Hash: nginxHash, Running: true, Env: map[string]string{"APP_CONFIG": "of another"}},
		}
		todo := compute(t, s)
		s.Outdated, s.Now = todo.Outdated, s.Now.Add(time.Second)
		stops += len(todo.Stop)
		run += len(todo.Stop)
	}
	assert.Equal(t, 7, stops, "after 3 s, and then 6, 12, 24, 48, 96 and 192 s later")
}

// The process has the value of the last variable of a name.
func TestAVariableThatALaterOneHides(t *testing.T) {
	p := pod(updating, changed)
	p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: "APP_CONFIG", Value: "fixed"})
	s := plan.Snapshot{Pod: p, EnvFromMetadata: true, Now: now, Containers: running()}
	s.Containers[1].Env = map[string]string{"APP_CONFIG": "fixed"}
	assert.Empty(t, compute(t, s).Outdated)
}

// A restart is wanted by the update that asks for it.
func TestWhatIsWanted(t *testing.T) {
	const main, side = "containerd://m1", "containerd://s1"
	told := withAnnotation(reported)
	assert.True(t, plan.Wants(pod(told, updating, changed), main))
	assert.False(t, plan.Wants(pod(told, updating), main), "the value is back")
	assert.False(t, plan.Wants(pod(told, changed), main), "no update is under way")
	assert.False(t, plan.Wants(pod(told, updating, changed), side))
	assert.True(t, plan.Wants(pod(told, updating, asked(`{"side":"`+side+`"}`)), side))
	assert.False(t, plan.Wants(pod(told, updating, asked(`{"side":"containerd://s0"}`)), side), "another run was meant")
	assert.False(t, plan.Wants(pod(told, updating, changed, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) }), main))
}
