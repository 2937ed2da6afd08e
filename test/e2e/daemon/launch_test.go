package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/test/story"
)

// A container starts when all containers of higher priority are ready.
func TestContainersStartByPriority(t *testing.T) {
	t.Parallel()
	const startUp = 3 * time.Second
	main, log, job := newContainer("main", 8080, "-ready-after", "3s"), newContainer("log", 8081, "-ready-after", "3s"), newContainer("job", 8082)
	log.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "10"}}
	job.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "-5"}}
	o := givenPod(t, main, log, job)
	startsInOrder(t, o, startUp, "log", "main", "job")
	story.Reaches(t, world, o, "launched", func(o *corev1.Pod) error {
		return story.Want(o.Annotations[contract.ContainerLaunchPriorityCompletedAnnotation] == "true", "annotations are %v", o.Annotations)
	})
}

func TestContainersStartInTheOrderOfTheList(t *testing.T) {
	t.Parallel()
	o := newPod(world.Namespace(t), newContainer("b", 8080, "-ready-after", "3s"), newContainer("a", 8081))
	o.Annotations = map[string]string{contract.ContainerLaunchPriorityAnnotation: contract.LaunchOrdered}
	require.NoError(t, world.Client.Create(t.Context(), o))
	isReady(t, o)
	startsInOrder(t, o, 3*time.Second, "b", "a")
}

// startsInOrder requires that each container has started at least that long after the previous one. Times of the
// runtime are in whole seconds.
func startsInOrder(t *testing.T, o *corev1.Pod, apart time.Duration, names ...string) {
	t.Helper()
	for i := range names[1:] {
		before, after := container(t, o, names[i]).State.Running.StartedAt, container(t, o, names[i+1]).State.Running.StartedAt
		assert.GreaterOrEqual(t, after.Sub(before.Time), apart-time.Second, "%s after %s", names[i+1], names[i])
	}
}

// A container that has started once restarts even if the operator does not run.
func TestALaunchedContainerRestarts(t *testing.T) {
	t.Parallel()
	main, log := newContainer("main", 8080), newContainer("log", 8081)
	log.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "10"}}
	o := givenPod(t, main, log)
	_, _ = world.Ask(t, o, "/crash") // the end of the process may come before the answer
	story.Reaches(t, world, o, "started again", func(o *corev1.Pod) error {
		return story.Want(restarts(o)["main"] == 1 && story.IsReady(o), "containers are %+v", o.Status.ContainerStatuses)
	})
}

func TestAPriorityMustBeANumber(t *testing.T) {
	t.Parallel()
	main, log := newContainer("main", 8080), newContainer("log", 8081)
	log.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "high"}}
	err := world.Client.Create(t.Context(), newPod(world.Namespace(t), main, log))
	require.ErrorContains(t, err, `spec.containers[1].env[0].value: Invalid value: "high"`)
}
