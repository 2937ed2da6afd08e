package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// helped gives the set a second container.
func helped(set *v1beta1.CloneSet) {
	containers := &set.Spec.Template.Spec.Containers
	*containers = append(*containers, corev1.Container{Name: "helper", Image: app + "v1", Args: []string{"-address=:8081"}})
}

// images returns a change of the images of all containers.
func images(version string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		for i := range set.Spec.Template.Spec.Containers {
			set.Spec.Template.Spec.Containers[i].Image = app + version
		}
	}
}

// mostOf returns more than half of the node's cpu.
func mostOf(node *corev1.Node) string {
	return resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()*55/100, resource.DecimalSI).String()
}

// One edit changes the images of both containers, and asks for more cpu for the first one than the node has left. The images
// arrive one pod after the other, and with them the pods serve. The set tells which pod waits for its cpu.
func TestAResizeThatIsPutOffHoldsBackNoImage(t *testing.T) {
	t.Parallel()
	nodes := &corev1.NodeList{}
	require.NoError(t, world.Client.List(t.Context(), nodes))
	node := &nodes.Items[len(nodes.Items)/2] // other stories fill the first and the last one
	set := newSet(world.Namespace(t), 2, requests("20m"), helped, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}
	})
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(1))
	rollout := forecasts.Edit(t, world, set, func(s *v1beta1.CloneSet) {
		images("v2")(s)
		requests(mostOf(node))(s)
	})
	story.Reaches(t, world, set, "new images in service", func(set *v1beta1.CloneSet) error {
		c, s := story.Condition(set, "Ready"), set.Status
		return story.Want(c.Reason == "ResizeDeferred" && s.UpdatedReplicas == 2 && s.UpdatedReadyReplicas == 2, "condition is %+v, status is %+v", c, s)
	})
	rollout.ComesTrue(t)
	waiting := 0
	for _, o := range podsOf(t, set) {
		for _, c := range o.Spec.Containers {
			assert.Equal(t, app+"v2", c.Image, "container %s of pod %s", c.Name, o.Name)
		}
		require.NoError(t, isReady(&o))
		assert.Equal(t, contract.LifecycleNormal, o.Labels[contract.LifecycleStateLabel])
		if story.PodCondition(&o, corev1.PodResizePending).Reason == corev1.PodReasonDeferred {
			waiting++
			assert.Contains(t, story.Condition(set, "Ready").Message, o.Name)
		}
	}
	assert.Positive(t, waiting)
	rolls(t, set, requests("30m"))
	end()
	assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
}
