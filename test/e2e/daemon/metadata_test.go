package daemon

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// A container reads its environment when it starts: the agent restarts only the containers that read the changed
// metadata, once.
func TestTheEnvironmentFollowsMetadata(t *testing.T) {
	t.Parallel()
	followsMetadata(t, func(*corev1.Pod) {})
}

// If the new value is written to the pod before the update, no container restarts; the update restarts it, once.
func TestAValueThatAHandHasWrittenBeforeIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	followsMetadata(t, func(o *corev1.Pod) {
		metaOf(t, o)
		story.Edit(t, world, o, func(o *corev1.Pod) { o.Annotations["config"] = "b" })
	})
}

func followsMetadata(t *testing.T, meanwhile func(*corev1.Pod)) {
	t.Helper()
	reader, other := newContainer("reader", 8080), newContainer("other", 8081)
	reader.Env = []corev1.EnvVar{fromAnnotation("CONFIG", "config")}
	set := newSet(world.Namespace(t), map[string]string{"config": "a"}, reader, other)
	require.NoError(t, world.Client.Create(t.Context(), set))
	before := settles(t, set)
	metaOf(t, before)
	meanwhile(before)
	rollout := forecasts.Edit(t, world, set, func(s *clonesets.CloneSet) { s.Spec.Template.Annotations["config"] = "b" })
	after := settles(t, set)
	rollout.ComesTrue(t)
	assert.Equal(t, story.Identities([]corev1.Pod{*before}), story.Identities([]corev1.Pod{*after}))
	assert.Equal(t, map[string]int32{"reader": 1, "other": 0}, restarts(after))
	environment, err := world.Ask(t, after, "/env")
	require.NoError(t, err)
	assert.Contains(t, environment, "CONFIG=b\n")
}

// The template asks for a restart: the agent restarts the container that it names, once, and the pod stays.
func TestAContainerIsRestartedInPlace(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), nil, newContainer("main", 8080), newContainer("other", 8081))
	require.NoError(t, world.Client.Create(t.Context(), set))
	before := settles(t, set)
	metaOf(t, before)
	rollout := forecasts.Edit(t, world, set, func(s *clonesets.CloneSet) {
		s.Spec.Template.Annotations = map[string]string{contract.RestartInPlaceAnnotation: "1 main"}
	})
	after := settles(t, set)
	rollout.ComesTrue(t)
	assert.Equal(t, story.Identities([]corev1.Pod{*before}), story.Identities([]corev1.Pod{*after}))
	assert.Equal(t, map[string]int32{"main": 1, "other": 0}, restarts(after))
	assert.NotEqual(t, container(t, before, "main").ContainerID, container(t, after, "main").ContainerID)
}

// Image and environment of a container change together, with one restart.
func TestImageAndEnvironmentChangeInOneRestart(t *testing.T) {
	t.Parallel()
	main := newContainer("main", 8080)
	main.Env = []corev1.EnvVar{fromAnnotation("CONFIG", "config")}
	set := newSet(world.Namespace(t), map[string]string{"config": "a"}, main)
	require.NoError(t, world.Client.Create(t.Context(), set))
	before := settles(t, set)
	metaOf(t, before)
	rollout := forecasts.Edit(t, world, set, func(s *clonesets.CloneSet) {
		s.Spec.Template.Annotations["config"] = "b"
		s.Spec.Template.Spec.Containers[0].Image = app + "v2"
	})
	after := settles(t, set)
	rollout.ComesTrue(t)
	assert.Equal(t, before.UID, after.UID)
	assert.Equal(t, map[string]int32{"main": 1}, restarts(after))
	environment, err := world.Ask(t, after, "/env")
	require.NoError(t, err)
	assert.Contains(t, environment, "CONFIG=b\n")
}

// Only an update restarts a container: a manual edit of an annotation does not.
func TestEditsByHandRestartNothing(t *testing.T) {
	t.Parallel()
	main := newContainer("main", 8080)
	main.Env = []corev1.EnvVar{fromAnnotation("CONFIG", "config")}
	set := newSet(world.Namespace(t), map[string]string{"config": "a"}, main)
	require.NoError(t, world.Client.Create(t.Context(), set))
	o := settles(t, set)
	reported := metaOf(t, o)
	story.Edit(t, world, o, func(o *corev1.Pod) { o.Annotations["config"] = "by hand" })
	// The agent has seen the edit when it has seen a later event of another pod of its node.
	witness := newPod(o.Namespace, newContainer("main", 8080))
	witness.Name, witness.Spec.NodeName = "witness", o.Spec.NodeName
	require.NoError(t, world.Client.Create(t.Context(), witness))
	isReady(t, witness)
	r := newRequest("witness", witness, "main")
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	assert.Equal(t, map[string]int32{"main": 0}, restarts(o))
	assert.Equal(t, reported, metaOf(t, o))
}

// metaOf waits until the agent has described the containers that run in the pod.
func metaOf(t *testing.T, o *corev1.Pod) string {
	t.Helper()
	story.Reaches(t, world, o, "described by the agent", func(o *corev1.Pod) error {
		var meta struct {
			Containers []struct{ Name, ContainerID string }
		}
		text := o.Annotations[contract.RuntimeContainersMetaAnnotation]
		if err := json.Unmarshal([]byte(text), &meta); err != nil {
			return err
		}
		present := len(meta.Containers) == len(o.Status.ContainerStatuses)
		for i := range meta.Containers {
			present = present && meta.Containers[i].ContainerID == container(t, o, meta.Containers[i].Name).ContainerID
		}
		return story.Want(present, "annotation is %s", text)
	})
	return o.Annotations[contract.RuntimeContainersMetaAnnotation]
}

// Containers are updated in the order of their priorities: each batch when the previous one is ready again.
func TestUpdatesInPlaceFollowPriorities(t *testing.T) {
	t.Parallel()
	sidecar, main := newContainer("sidecar", 8080, "-ready-after", "3s"), newContainer("main", 8081)
	sidecar.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "10"}, fromAnnotation("APP_CONFIG", "app-config")}
	set := newSet(world.Namespace(t), map[string]string{"app-config": "a"}, main, sidecar)
	require.NoError(t, world.Client.Create(t.Context(), set))
	before := settles(t, set)
	metaOf(t, before)
	rollout := forecasts.Edit(t, world, set, func(s *clonesets.CloneSet) {
		s.Spec.Template.Annotations["app-config"] = "b"
		s.Spec.Template.Spec.Containers[0].Image = app + "v2"
	})
	after := settles(t, set)
	rollout.ComesTrue(t)
	assert.Equal(t, before.UID, after.UID)
	assert.Equal(t, map[string]int32{"main": 1, "sidecar": 1}, restarts(after))
	assert.Equal(t, [][]string{{"sidecar"}, {"main"}}, batches(t, after))
	first, second := container(t, after, "sidecar").State.Running.StartedAt, container(t, after, "main").LastTerminationState.Terminated.FinishedAt
	assert.GreaterOrEqual(t, second.Sub(first.Time), 2*time.Second, "main goes on until sidecar is ready")
}

// batches returns the containers of each batch of the pod's last update.
func batches(t *testing.T, o *corev1.Pod) [][]string {
	t.Helper()
	var state struct {
		ContainerBatchesRecord []struct{ Containers []string }
	}
	require.NoError(t, json.Unmarshal([]byte(o.Annotations[contract.InPlaceUpdateStateAnnotation]), &state))
	var all [][]string
	for _, b := range state.ContainerBatchesRecord {
		all = append(all, b.Containers)
	}
	return all
}
