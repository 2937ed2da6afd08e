package budget

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// broken is a version of the application that there is no image of.
const broken = "no-such-version"

// atMost returns a budget of the stories' pods, so many of which may be unavailable.
func atMost(namespace string, n int32) *v1beta1.PodUnavailableBudget {
	b := atLeast(namespace, 0)
	b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(n))
	return b
}

// counts waits until the budget has no open grant and these numbers: total, desired, current and allowed.
func counts(t *testing.T, b *v1beta1.PodUnavailableBudget, want ...int32) {
	t.Helper()
	story.Reaches(t, world, b, fmt.Sprint("numbers ", want), func(b *v1beta1.PodUnavailableBudget) error {
		s := b.Status
		have := []int32{s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed}
		return story.Want(slices.Equal(want, have) && len(s.DisruptedPods)+len(s.UnavailablePods) == 0, "status is %+v", s)
	})
}

// ofVersion counts the active pods of a version.
func ofVersion(t *testing.T, namespace, version string) (n int) {
	t.Helper()
	for _, image := range story.Images(story.Active(world.Pods(t, namespace))) {
		if image == app+version {
			n++
		}
	}
	return n
}

// runs returns the edit that gives the pods of a set a version.
func runs(version string) func(*clonesets.CloneSet) {
	return func(set *clonesets.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = app + version }
}

// A set that would break all its pods at once breaks as many as the budget has, and is repaired by another edit.
func TestABrokenRolloutEndsAtTheBudget(t *testing.T) {
	t.Parallel()
	for _, policy := range []clonesets.PodUpdatePolicy{clonesets.InPlaceOnly, clonesets.ReCreate} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			set := newCloneSet(world.Namespace(t), 2, policy)
			require.NoError(t, world.Client.Create(t.Context(), set))
			settles(t, set, "v1", 2)
			b := atMost(set.Namespace, 1)
			givenBudget(t, b, 2)
			end := world.Always(t, set.Namespace, story.AtLeastReady(1))
			rollout := forecasts.Edit(t, world, set, runs(broken), "--crash", app+broken)
			story.Eventually(t, "the broken pod", func(context.Context) error {
				return story.Want(ofVersion(t, set.Namespace, broken) == 1, "there is none")
			})
			counts(t, b, 2, 1, 1, 0)
			assert.Equal(t, 1, ofVersion(t, set.Namespace, "v1"))
			rollout.ComesTrue(t)
			rollout = forecasts.Edit(t, world, set, runs("v2"))
			settles(t, set, "v2", 2)
			rollout.ComesTrue(t)
			counts(t, b, 2, 1, 2, 1)
			end()
		})
	}
}

// What two sets break they break together.
func TestTwoBrokenRolloutsShareTheBudget(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	var sets []*clonesets.CloneSet
	for _, name := range []string{"web", "api"} {
		set := newCloneSet(namespace, 3, clonesets.InPlaceOnly)
		set.Name = name
		set.Spec.Selector.MatchLabels["set"], set.Spec.Template.Labels["set"] = name, name
		require.NoError(t, world.Client.Create(t.Context(), set))
		sets = append(sets, set)
	}
	settles(t, sets[0], "v1", 6)
	b := atMost(namespace, 2)
	givenBudget(t, b, 6)
	end := world.Always(t, namespace, story.AtLeastReady(4))
	for _, set := range sets {
		story.Edit(t, world, set, runs(broken))
	}
	story.Eventually(t, "two broken pods", func(context.Context) error {
		return story.Want(ofVersion(t, namespace, broken) == 2, "there are %d", ofVersion(t, namespace, broken))
	})
	counts(t, b, 6, 4, 4, 0)
	assert.Equal(t, 4, ofVersion(t, namespace, "v1"))
	for _, set := range sets {
		story.Edit(t, world, set, runs("v2"))
	}
	for _, set := range sets {
		settles(t, set, "v2", 6)
	}
	counts(t, b, 6, 4, 6, 2)
	end()
}

// image returns the patch that changes the image of a pod in place, as any writer can.
func image(version string) client.Patch {
	return client.RawPatch("application/strategic-merge-patch+json", []byte(`{"spec":{"containers":[{"name":"main","image":"`+app+version+`"}]}}`))
}

// unavailable returns the patch that labels a pod as unavailable, or takes the label away.
func unavailable(value string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1beta1.UnavailableLabelPrefix+`data":`+value+`}}}`))
}

// A Deployment whose strategy takes all pods at once keeps one; users then take pods out of service by a label.
func TestADeploymentBreaksNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	d := givenDeployment(t, world.Namespace(t), 2)
	story.Edit(t, world, d, func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromString("100%")), MaxSurge: new(intstr.FromInt32(0))}
	})
	b := oneOf(d.Namespace, "apps/v1", "Deployment")
	givenBudget(t, b, 2)
	end := world.Always(t, d.Namespace, story.AtLeastReady(1))
	change := func(version string) {
		story.Edit(t, world, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = app + version })
	}
	change(broken)
	story.Eventually(t, "one pod of before", func(context.Context) error {
		images := story.Images(story.Active(world.Pods(t, d.Namespace)))
		slices.Sort(images)
		return story.Want(slices.Equal(images, []string{app + broken, app + broken, app + "v1"}), "images are %v", images)
	})
	counts(t, b, 2, 1, 1, 0)
	change("v2")
	story.Eventually(t, "the pods of the repaired version", func(context.Context) error {
		images := story.Images(story.Active(world.Pods(t, d.Namespace)))
		return story.Want(slices.Equal(images, []string{app + "v2", app + "v2"}), "images are %v", images)
	})
	counts(t, b, 2, 1, 2, 1)
	end()

	pods := story.Active(world.Pods(t, d.Namespace))
	labelled, other := &pods[0], &pods[1]
	require.NoError(t, world.Client.Patch(t.Context(), labelled, unavailable(`"true"`)))
	counts(t, b, 2, 1, 1, 0)
	require.NoError(t, world.Client.Patch(t.Context(), labelled, image("v1")))
	for _, patch := range []client.Patch{unavailable(`"true"`), image("v1")} {
		err := world.Client.Patch(t.Context(), other.DeepCopy(), patch)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	out, err := world.Kubectl(t, "", "-n", d.Namespace, "annotate", "podunavailablebudgets.v1alpha1.policy.kruise.io", b.Name, "kruise.io/pub-protect-operations=DELETE")
	require.NoError(t, err, out)
	story.Eventually(t, "an update that is not protected any more", func(ctx context.Context) error {
		return world.Client.Patch(ctx, other, image("v1"))
	})
	require.NoError(t, world.Client.Patch(t.Context(), labelled, unavailable("null")))
	counts(t, b, 2, 1, 2, 1)
}

// Somebody who changes a container of all pods changes one, and goes on when that one serves again.
func TestAForeignWriterBreaksNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	d := givenDeployment(t, world.Namespace(t), 5)
	b := atMost(d.Namespace, 1)
	givenBudget(t, b, 5)
	end := world.Always(t, d.Namespace, story.AtLeastReady(4))
	pods := story.Active(world.Pods(t, d.Namespace))
	var changed *corev1.Pod
	for i := range pods {
		err := world.Client.Patch(t.Context(), pods[i].DeepCopy(), image(broken))
		if err == nil && changed == nil {
			changed = &pods[i]
			continue
		}
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	require.NotNil(t, changed)
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	assert.Len(t, b.Status.UnavailablePods, 1)
	assert.Contains(t, b.Status.UnavailablePods, changed.Name)
	counts(t, b, 5, 4, 4, 0)
	require.NoError(t, world.Client.Patch(t.Context(), changed, image("v2")), "what does not serve is free")
	for i := range pods {
		story.Eventually(t, "the change of "+pods[i].Name, func(ctx context.Context) error { return world.Client.Patch(ctx, &pods[i], image("v2")) })
	}
	counts(t, b, 5, 4, 5, 1)
	end()
	assert.Equal(t, 5, ofVersion(t, d.Namespace, "v2"))
	assert.Equal(t, metav1.ConditionFalse, story.Condition(b, "Exhausted").Status)
}
