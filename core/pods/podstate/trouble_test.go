package podstate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// cached is the pod as an operator's cache shows it.
func cached(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	_, err := fastclient.TrimPod(pod)
	require.NoError(t, err)
	return pod
}

// container sets the status of container main, of a pod that is not ready.
func container(change func(*corev1.ContainerStatus)) gen.PodOption {
	return func(pod *corev1.Pod) {
		gen.NotReady(second(0))(pod)
		change(&pod.Status.ContainerStatuses[0])
	}
}

func waiting(reason string) gen.PodOption {
	return all(gen.Waiting(reason, second(0)), gen.Phase(corev1.PodRunning))
}

// run is a run of the container from one second to the other, which ended with the exit code.
func run(from, to int, code int32) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", StartedAt: metav1.NewTime(second(from)), FinishedAt: metav1.NewTime(second(to)),
	}
}

// after is a container that runs again after another run.
func after(former *corev1.ContainerStateTerminated) gen.PodOption {
	return container(func(s *corev1.ContainerStatus) {
		s.State.Running = &corev1.ContainerStateRunning{}
		s.LastTerminationState.Terminated, s.RestartCount = former, 1
	})
}

func ended(end *corev1.ContainerStateTerminated) gen.PodOption {
	return container(func(s *corev1.ContainerStatus) { s.State.Terminated = end })
}

func unschedulable(reason string) gen.PodOption { return gen.Unschedulable(reason, second(0)) }

func ownPolicy(policy corev1.ContainerRestartPolicy) gen.PodOption {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].RestartPolicy = &policy }
}

func updatedInPlace(record string) gen.PodOption {
	return gen.Annotation(contract.InPlaceUpdateStateAnnotation, record)
}

func all(options ...gen.PodOption) gen.PodOption {
	return func(pod *corev1.Pod) {
		for _, o := range options {
			o(pod)
		}
	}
}

func TestTrouble(t *testing.T) {
	const (
		updated = `{"updateTimestamp":"2030-01-01T00:01:00Z","containerBatchesRecord":[{"timestamp":"2030-01-01T00:02:00Z","containers":["main"]}]}`
		minute  = 60
	)
	initFails := func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: "done", Ready: true, State: corev1.ContainerState{Terminated: run(0, 1, 0)}},
			{Name: "setup", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
		}
	}
	cases := map[string]struct {
		pod  gen.PodOption
		want podstate.Trouble
	}{
		"a new pod":                         {all(), podstate.Trouble{}},
		"one that is ready":                 {gen.Ready(second(0)), podstate.Trouble{}},
		"one that runs and is not ready":    {gen.NotReady(second(0)), podstate.Trouble{}},
		"no node":                           {unschedulable("Unschedulable"), podstate.Trouble{Reason: "Unschedulable"}},
		"a scheduling gate":                 {unschedulable("SchedulingGated"), podstate.Trouble{Reason: "SchedulingGated"}},
		"the start":                         {waiting("ContainerCreating"), podstate.Trouble{}},
		"init containers":                   {waiting("PodInitializing"), podstate.Trouble{}},
		"no word from the kubelet":          {waiting(""), podstate.Trouble{}},
		"a pull":                            {waiting("ErrImagePull"), podstate.Trouble{Reason: "ErrImagePull", Container: "main"}},
		"the pause after it":                {waiting("ImagePullBackOff"), podstate.Trouble{Reason: "ErrImagePull", Container: "main"}},
		"a registry":                        {waiting("RegistryUnavailable"), podstate.Trouble{Reason: "ErrImagePull", Container: "main"}},
		"a name":                            {waiting("InvalidImageName"), podstate.Trouble{Reason: "InvalidImageName", Container: "main"}},
		"an image that is never pulled":     {waiting("ErrImageNeverPull"), podstate.Trouble{Reason: "ErrImageNeverPull", Container: "main"}},
		"a configuration":                   {waiting("CreateContainerConfigError"), podstate.Trouble{Reason: "CreateContainerConfigError", Container: "main"}},
		"a crash loop":                      {waiting("CrashLoopBackOff"), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"a command":                         {waiting("RunContainerError"), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"the end in a crash loop":           {ended(run(0, 5, 1)), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"the run in a crash loop":           {after(run(0, 5, 1)), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"a run that ends well, and again":   {after(run(0, 5, 0)), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"what could not be started":         {after(&corev1.ContainerStateTerminated{StartedAt: metav1.Unix(0, 0), FinishedAt: metav1.NewTime(second(9))}), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"a crash after a long run":          {after(run(0, 10*minute, 1)), podstate.Trouble{}},
		"a restart for an update":           {all(after(run(0, 2*minute+5, 143)), updatedInPlace(updated)), podstate.Trouble{}},
		"the end for an update":             {all(ended(run(minute+1, 2*minute+5, 143)), updatedInPlace(updated)), podstate.Trouble{}},
		"a crash after an update":           {all(after(run(2*minute+5, 2*minute+9, 1)), updatedInPlace(updated)), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"a record that cannot be read":      {all(after(run(0, 5, 1)), updatedInPlace("{")), podstate.Trouble{}},
		"a pull for an update":              {all(waiting("ImagePullBackOff"), updatedInPlace(updated)), podstate.Trouble{Reason: "ErrImagePull", Container: "main"}},
		"a container that stays down":       {all(ended(run(0, 5, 1)), ownPolicy(corev1.ContainerRestartPolicyNever)), podstate.Trouble{Reason: "Error", Container: "main"}},
		"one that fails and starts again":   {all(ended(run(0, 5, 1)), ownPolicy(corev1.ContainerRestartPolicyOnFailure)), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "main"}},
		"an init container, before others":  {all(waiting("PodInitializing"), initFails), podstate.Trouble{Reason: "CrashLoopBackOff", Container: "setup"}},
		"a pod that was evicted":            {all(gen.NotReady(second(0)), gen.Phase(corev1.PodFailed), func(pod *corev1.Pod) { pod.Status.Reason = "Evicted" }), podstate.Trouble{Reason: "Evicted"}},
		"a pod that has failed":             {all(gen.NotReady(second(0)), gen.Phase(corev1.PodFailed)), podstate.Trouble{Reason: "Failed"}},
		"a pod that has come to its end":    {all(ended(run(0, 5, 0)), gen.Phase(corev1.PodSucceeded)), podstate.Trouble{}},
		"a pod whose containers are ending": {all(ended(run(0, 5, 143)), gen.Terminating()), podstate.Trouble{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, podstate.TroubleOf(cached(t, gen.Pod("web-1", c.pod))))
		})
	}
}

// A workload thinks when a pod gets into trouble and out of it, not in each turn between.
func TestTurnsOfOneTroubleChangeNothing(t *testing.T) {
	turns := map[string][]gen.PodOption{
		"a pull":       {waiting("ErrImagePull"), waiting("ImagePullBackOff"), waiting("ErrImagePull")},
		"a crash loop": {ended(run(0, 5, 1)), waiting("CrashLoopBackOff"), ended(run(20, 25, 137)), waiting("RunContainerError")},
		"no node":      {unschedulable("Unschedulable"), all(unschedulable("Unschedulable"), func(pod *corev1.Pod) { podstate.Condition(pod, corev1.PodScheduled).Message = "0/4 nodes" })},
	}
	for name, options := range turns {
		t.Run(name, func(t *testing.T) {
			well := cached(t, gen.Pod("web-1", gen.NotReady(second(0))))
			last := cached(t, gen.Pod("web-1", all(gen.NotReady(second(0)), options[0])))
			assert.True(t, podstate.Changed(well, last), "it begins")
			assert.True(t, podstate.Changed(last, well), "it ends")
			for _, o := range options[1:] {
				next := cached(t, gen.Pod("web-1", all(gen.NotReady(second(0)), o)))
				assert.False(t, podstate.Changed(last, next))
				last = next
			}
		})
	}
}

// The example is the first pod, of the update revision where one is in trouble there.
func TestTheFirstPodInTroubleIsNamed(t *testing.T) {
	of := func(name string, options ...gen.PodOption) *podstate.State {
		s := podstate.Of(cached(t, gen.Pod(name, options...)), second(0), 0)
		return &s
	}
	old := map[string]bool{"old-1": true, "old-2": true}
	cases := map[string]struct {
		pods []*podstate.State
		want string
	}{
		"none":                         {nil, ""},
		"no trouble":                   {[]*podstate.State{nil, of("new-1", gen.Ready(second(0))), of("new-2")}, ""},
		"a container":                  {[]*podstate.State{of("new-1"), of("new-2", waiting("ErrImagePull")), of("new-3", waiting("CrashLoopBackOff"))}, "; ErrImagePull (new-2, container main)"},
		"a pod":                        {[]*podstate.State{of("old-1", unschedulable("Unschedulable")), of("old-2", waiting("ErrImagePull"))}, "; Unschedulable (old-1)"},
		"the update before the others": {[]*podstate.State{of("old-1", waiting("CrashLoopBackOff")), of("new-1", waiting("ErrImagePull"))}, "; ErrImagePull (new-1, container main)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := podstate.FirstTrouble(len(c.pods), func(i int) (*podstate.State, bool) {
				return c.pods[i], c.pods[i] != nil && !old[c.pods[i].Pod.Name]
			})
			assert.Equal(t, c.want, got)
		})
	}
}
