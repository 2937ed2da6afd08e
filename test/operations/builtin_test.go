package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/test/story"
)

// The same user and the same nodes: after each step a DaemonSet has the same pods on the same nodes and the same numbers
// in its status as one of the built-in kind beside it, and on the way never fewer of them are in service.
func TestDaemonSetsFollowTheBuiltInKind(t *testing.T) {
	need(t)
	install(t, "", "daemonset")
	removeNodes := addNodes(t)
	two := givenTwins(t)
	all := []string{"sim-0", "sim-1", "sim-2", "twin-0", "twin-1"}
	steps := []struct {
		name string
		act  func()
		want map[string]string // the image that runs on each node
	}{
		{"first pods", func() {}, on(all, "app:v1")},
		{"an update", func() { two.edit(t, image("app:v2")) }, on(all, "app:v2")},
		{"a bad image and a good one", func() {
			two.edit(t, image(badImage))
			two.have(t, 1, badImage)
			two.edit(t, image("app:v3"))
		}, on(all, "app:v3")},
		{"two updates within minReadySeconds", func() {
			two.edit(t, value(int64(2), "spec", "minReadySeconds"), value(int64(2), "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), image("app:v4"))
			two.have(t, 2, "app:v4")
			two.edit(t, image("app:v5"))
		}, on(all, "app:v5")},
		{"a surge", func() {
			two.edit(t, value(int64(0), "spec", "minReadySeconds"), image("app:v6"),
				value(map[string]any{"maxSurge": "40%", "maxUnavailable": int64(0)}, "spec", "updateStrategy", "rollingUpdate"))
		}, on(all, "app:v6")},
		{"a cordoned node and an update", func() {
			editNode(t, "twin-0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			two.edit(t, image("app:v7"))
		}, on(all, "app:v7")},
		{"a node that nobody is scheduled to", func() {
			editNode(t, "twin-1", taint(corev1.TaintEffectNoSchedule))
		}, on(all, "app:v7")},
		{"a node that nobody may run on", func() {
			editNode(t, "twin-1", taint(corev1.TaintEffectNoExecute))
		}, on(all[:4], "app:v7")},
		{"a node selector", func() {
			editNode(t, "twin-1", func(n *corev1.Node) { n.Spec.Taints = nil })
			two.edit(t, value(map[string]any{"twin": "true"}, "spec", "template", "spec", "nodeSelector"))
		}, on(all[3:], "app:v7")},
		{"a node that gets the label", func() {
			editNode(t, "sim-2", func(n *corev1.Node) { n.Labels["twin"] = "true" })
		}, on(all[2:], "app:v7")},
		{"nodes that are deleted", removeNodes, on(all[2:3], "app:v7")},
		{"nodes that come", func() { addNodes(t) }, on(all[2:], "app:v7")},
		{"OnDelete", func() {
			two.edit(t, value(map[string]any{"type": "OnDelete"}, "spec", "updateStrategy"), image("app:v8"))
			two.deletePodOn(t, "twin-0")
		}, map[string]string{"sim-2": "app:v7", "twin-0": "app:v8", "twin-1": "app:v7"}},
	}
	t.Cleanup(func() { editNode(t, "sim-2", func(n *corev1.Node) { delete(n.Labels, "twin") }) })
	served := map[string]string{}
	for _, step := range steps {
		// Nodes that have a pod before and after the step.
		staying := maps.Clone(step.want)
		maps.DeleteFunc(staying, func(node, _ string) bool { return served[node] == "" })
		worst := two.watch(t, staying)
		step.act()
		two.settle(t, step.name, step.want)
		ours, theirs := worst()
		t.Logf("%s: %d of %d nodes were in service at least, of the built-in kind %d", step.name, ours, len(staying), theirs)
		assert.GreaterOrEqual(t, ours, theirs, "%s: nodes in service", step.name)
		served = step.want
	}
}

func on(nodes []string, image string) map[string]string {
	want := map[string]string{}
	for _, node := range nodes {
		want[node] = image
	}
	return want
}

// addNodes adds nodes twin-0 and twin-1, which the returned function takes away. At the end of the test they are gone.
func addNodes(t *testing.T) (remove func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	simulation := rest.CopyConfig(world.Cluster.RESTConfig())
	simulation.UserAgent, simulation.QPS = simnodes.UserAgent, -1
	added, err := simnodes.Start(ctx, simulation, simnodes.Options{
		Nodes: 2, Prefix: "twin-", Images: behaviours(), Labels: func(int) map[string]string { return map[string]string{"twin": "true"} },
	})
	require.NoError(t, err)
	remove = sync.OnceFunc(func() {
		stop()
		added.Wait()
		for _, name := range added.Names() {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			assert.NoError(t, client.IgnoreNotFound(world.Client.Delete(context.WithoutCancel(t.Context()), node)))
		}
	})
	t.Cleanup(remove)
	return remove
}

func editNode(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	story.Eventually(t, "an edit of node "+name, func(context.Context) error {
		node := &corev1.Node{}
		if err := world.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		change(node)
		return world.Client.Update(ctx, node)
	})
}

func taint(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "busy", Effect: effect}} }
}

// twins are two DaemonSets with the same spec, each in a namespace of its own: one of the feature, and one of the built-in
// kind.
type twins struct{ ours, builtIn *unstructured.Unstructured }

func givenTwins(t *testing.T) twins {
	t.Helper()
	ours := given(t, world.Namespace(t), "twin")
	builtIn := read(t, "twin")
	builtIn.SetAPIVersion("apps/v1")
	builtIn.SetNamespace(world.Namespace(t))
	require.NoError(t, world.Client.Create(t.Context(), builtIn))
	return twins{ours, builtIn}
}

func (w twins) each(do func(set *unstructured.Unstructured)) {
	do(w.ours)
	do(w.builtIn)
}

type change func(set *unstructured.Unstructured) error

func image(name string) change {
	return value([]any{map[string]any{"name": "main", "image": name}}, "spec", "template", "spec", "containers")
}

func value(value any, path ...string) change {
	return func(set *unstructured.Unstructured) error {
		return unstructured.SetNestedField(set.Object, value, path...)
	}
}

func (w twins) edit(t *testing.T, changes ...change) {
	t.Helper()
	w.each(func(set *unstructured.Unstructured) {
		story.Edit(t, world, set, func(set *unstructured.Unstructured) {
			for _, change := range changes {
				require.NoError(t, change(set))
			}
		})
	})
}

// have waits until each of the sets has at least n pods with the image.
func (w twins) have(t *testing.T, n int, image string) {
	t.Helper()
	w.each(func(set *unstructured.Unstructured) {
		story.Eventually(t, "pods with image "+image, func(context.Context) error {
			found := 0
			for _, o := range story.Images(story.Active(world.Pods(t, set.GetNamespace()))) {
				if o == image {
					found++
				}
			}
			return story.Want(found >= n, "%s has %d", set.GetAPIVersion(), found)
		})
	})
}

func (w twins) deletePodOn(t *testing.T, node string) {
	t.Helper()
	w.each(func(set *unstructured.Unstructured) {
		story.Reaches(t, world, set, "observed", isObserved)
		for _, o := range story.Active(world.Pods(t, set.GetNamespace())) {
			if o.Spec.NodeName == node {
				require.NoError(t, world.Client.Delete(t.Context(), &o))
			}
		}
	})
}

// settle waits until each of the sets has exactly the wanted pods, ready, and both have the same numbers in their status.
func (w twins) settle(t *testing.T, step string, want map[string]string) {
	t.Helper()
	w.each(func(set *unstructured.Unstructured) {
		story.Eventually(t, step, func(context.Context) error {
			got := inService(t, set.GetNamespace(), want)
			return story.Want(maps.Equal(got, want), "%s: pods in service are %v, not %v", set.GetAPIVersion(), got, want)
		})
	})
	story.Eventually(t, step+": equal status", func(ctx context.Context) error {
		err := errors.Join(world.Client.Get(ctx, client.ObjectKeyFromObject(w.ours), w.ours), world.Client.Get(ctx, client.ObjectKeyFromObject(w.builtIn), w.builtIn))
		ours, theirs := numbers(w.ours), numbers(w.builtIn)
		if !maps.Equal(ours, theirs) {
			err = errors.Join(err, w.touch(ctx), fmt.Errorf("ours is %v, that of the built-in kind %v", ours, theirs))
		}
		return errors.Join(err, isObserved(w.ours), isObserved(w.builtIn))
	})
}

// touch has the built-in controller look at its set. Of itself it does not count again when a node gets a taint with which
// its pod may stay.
func (w twins) touch(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"touched": %q}}}`, w.builtIn.GetResourceVersion())
	return world.Client.Patch(ctx, w.builtIn.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// inService returns the image of the ready pod on each node that exists. A node with several pods has all their images.
func inService(t *testing.T, namespace string, nodes map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, o := range story.Active(world.Pods(t, namespace)) {
		if o.Spec.NodeName != "" && nodes[o.Spec.NodeName] == "" && !isNode(t, o.Spec.NodeName) {
			continue // pods of a deleted node are collected after a minute
		}
		image := o.Spec.Containers[0].Image
		if !story.IsReady(&o) {
			image += " not ready"
		}
		if before := got[o.Spec.NodeName]; before != "" {
			image = before + " " + image
		}
		got[o.Spec.NodeName] = image
	}
	return got
}

func isNode(t *testing.T, name string) bool {
	t.Helper()
	err := world.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{})
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

func isObserved(set *unstructured.Unstructured) error {
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	return story.Want(observed == set.GetGeneration(), "generation %d of %s is observed, not %d", observed, set.GetAPIVersion(), set.GetGeneration())
}

// numbers returns what both kinds count in their status; a number that is not there is 0.
func numbers(set *unstructured.Unstructured) map[string]string {
	got := map[string]string{}
	for _, field := range []string{"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady", "numberUnavailable", "updatedNumberScheduled"} {
		n, _, _ := unstructured.NestedInt64(set.Object, "status", field)
		got[field] = strconv.FormatInt(n, 10)
	}
	return got
}

// watch counts, in every state that a watch shows until the returned function is called, the nodes among those given that
// have a pod in service, and returns the smallest numbers.
func (w twins) watch(t *testing.T, nodes map[string]string) (worst func() (ours, builtIn int)) {
	t.Helper()
	lowest := map[*unstructured.Unstructured]*int{}
	var ends []func()
	w.each(func(set *unstructured.Unstructured) {
		low := len(nodes)
		lowest[set] = &low
		ends = append(ends, world.Always(t, set.GetNamespace(), func(pods story.Pods) error {
			serving := map[string]bool{}
			for _, o := range pods {
				if nodes[o.Spec.NodeName] != "" && o.DeletionTimestamp == nil && story.IsReady(o) {
					serving[o.Spec.NodeName] = true
				}
			}
			low = min(low, len(serving))
			return nil
		}))
	})
	return func() (int, int) {
		t.Helper()
		for _, end := range ends {
			end()
		}
		return *lowest[w.ours], *lowest[w.builtIn]
	}
}
