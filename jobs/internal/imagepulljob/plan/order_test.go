package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// on returns a pod on the node that is named like it.
func on(name string, options ...gen.PodOption) corev1.Pod {
	return *gen.Pod(name, append([]gen.PodOption{gen.OnNode("node-of-" + name)}, options...)...)
}

func readyFor(d time.Duration) gen.PodOption { return gen.Ready(gen.Epoch().Add(-d)) }

// Images come to the nodes first whose pods are updated first.
func TestNodesComeInTheOrderOfTheUpdate(t *testing.T) {
	ours, builtIn := "apps.kruise.io/v1beta1", "apps/v1"
	states := []corev1.Pod{
		on("a", readyFor(time.Hour)), on("b", readyFor(time.Minute)), on("c", gen.Phase(corev1.PodPending)),
	}
	weighted := []corev1.Pod{
		on("a", gen.Label("tier", "test"), readyFor(time.Hour)), on("b", gen.Label("tier", "live"), readyFor(time.Minute)),
		on("c", gen.Label("tier", "test"), readyFor(time.Minute)),
	}
	ordinals := []corev1.Pod{on("web-1"), on("web-10"), on("web-2")}
	const weights = `{orderPriority: [], weightPriority: [{weight: 9, matchSelector: {matchLabels: {tier: test}}}]}`
	for name, c := range map[string]struct {
		kind, version string
		object        string
		pods          []corev1.Pod
		want          string
	}{
		"of nobody":                             {"", "", "", states, "a b c"},
		"a CloneSet":                            {"CloneSet", ours, `{spec: {}}`, states, "c b a"},
		"a CloneSet that cannot be read":        {"CloneSet", ours, "", states, "a b c"},
		"a CloneSet with a priority":            {"CloneSet", ours, `{spec: {updateStrategy: {rollingUpdate: {priorityStrategy: ` + weights + `}}}}`, weighted, "c a b"},
		"a CloneSet of the older version":       {"CloneSet", "apps.kruise.io/v1alpha1", `{spec: {updateStrategy: {priorityStrategy: ` + weights + `}}}`, weighted, "c a b"},
		"a CloneSet that scatters":              {"CloneSet", ours, `{spec: {updateStrategy: {rollingUpdate: {scatterStrategy: [{key: tier, value: live}]}}}}`, weighted, "b c a"},
		"a CloneSet of somebody else":           {"CloneSet", "example.com/v1", `{spec: {}}`, states, "a b c"},
		"a StatefulSet":                         {"StatefulSet", ours, `{spec: {}}`, ordinals, "web-10 web-2 web-1"},
		"a StatefulSet that cannot be read":     {"StatefulSet", ours, "", ordinals, "web-10 web-2 web-1"},
		"a built-in StatefulSet":                {"StatefulSet", builtIn, "", ordinals, "web-10 web-2 web-1"},
		"a StatefulSet with a priority":         {"StatefulSet", ours, `{spec: {updateStrategy: {rollingUpdate: {unorderedUpdate: {priorityStrategy: ` + weights + `}}}}}`, weighted, "a c b"},
		"a version of which nothing is known":   {"StatefulSet", ours, `{spec: {updateStrategy: [all]}}`, ordinals, "web-10 web-2 web-1"},
		"a DaemonSet, whose order is not known": {"DaemonSet", ours, `{spec: {}}`, ordinals, "web-1 web-10 web-2"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if c.object != "" {
				object = testenv.Fields(t, c.object)
			}
			order := Order{}
			if c.kind != "" {
				order = OrderOf(&metav1.OwnerReference{APIVersion: c.version, Kind: c.kind}, object)
			}
			want := make([]string, 0, len(c.pods))
			for name := range strings.FieldsSeq(c.want) {
				want = append(want, "node-of-"+name)
			}
			assert.Equal(t, want, order.NodesOf(c.pods, gen.Epoch()))
		})
	}
}

func TestOnlyNodesOfActivePodsArePulledOn(t *testing.T) {
	going := on("going")
	going.DeletionTimestamp = new(metav1.NewTime(gen.Epoch()))
	pods := []corev1.Pod{
		on("a", gen.OnNode("n1")), on("b", gen.OnNode("n1")), on("c", gen.OnNode("n2")), on("d", gen.OnNode("")), going,
		on("done", gen.Phase(corev1.PodSucceeded)), on("failed", gen.Phase(corev1.PodFailed)),
	}
	assert.Equal(t, []string{"n1", "n2"}, Order{}.NodesOf(pods, gen.Epoch()))
}

func TestWhoseOrderIsRead(t *testing.T) {
	for owner, want := range map[metav1.OwnerReference]bool{
		{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}:     true,
		{APIVersion: "apps.kruise.io/v1alpha1", Kind: "StatefulSet"}: true,
		{APIVersion: "apps.kruise.io/v1beta1", Kind: "DaemonSet"}:    false,
		{APIVersion: "apps/v1", Kind: "StatefulSet"}:                 false,
	} {
		assert.Equal(t, want, IsRead(&owner), owner)
	}
}

// A node that is not ready holds its place until it is given up. It begins when no ready node is left.
func TestNodesThatAreNotReadyBeginLast(t *testing.T) {
	targets := []*nodeimage.NodeImage{image("n0"), image("n1"), image("n2")}
	down := map[string]bool{"n0": true}
	asked := func(p *Plan) (names []string) {
		for i, o := range targets {
			if after := written(t, p, o); after != o {
				answer(after, nodeimage.ImageSucceeded)
				targets[i], names = after, append(names, o.Name)
			}
		}
		return names
	}
	for _, want := range []string{"n1", "n2", "n0"} {
		p := compute(t, Snapshot{Job: job(), Targets: targets, NotReady: down, Now: now})
		assert.Equal(t, []string{want}, asked(&p))
	}
}
