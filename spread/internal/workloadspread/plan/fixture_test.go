package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// given is a spread over subsets that are written like "a=2 b=30% c", created at the epoch.
func given(subsets string) *v1beta1.WorkloadSpread {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: "web", UID: "web-uid", Generation: 1, CreationTimestamp: metav1.NewTime(gen.Epoch()),
	}}
	s.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for text := range strings.FieldsSeq(subsets) {
		name, most, limited := strings.Cut(text, "=")
		subset := v1beta1.WorkloadSpreadSubset{Name: name, RequiredNodeSelector: in(name)}
		if limited {
			subset.MaxReplicas = new(intstr.Parse(most))
		}
		s.Spec.Subsets = append(s.Spec.Subsets, subset)
	}
	return s
}

func in(zone string) *corev1.NodeSelectorTerm {
	return &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
	}}
}

func adaptive(s *v1beta1.WorkloadSpread, seconds int32) *v1beta1.WorkloadSpread {
	s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type: v1beta1.AdaptiveStrategy, Adaptive: &v1beta1.AdaptiveSettings{RescheduleCriticalSeconds: &seconds},
	}
	return s
}

// in subset of spread web.
func member(subset string) gen.PodOption {
	return gen.Annotation(v1beta1.MatchedAnnotation, `{"name":"web","subset":"`+subset+`"}`)
}

// hash is of a pod of a ReplicaSet.
func hash(h string) gen.PodOption {
	return func(pod *corev1.Pod) {
		gen.Label(contract.TemplateHashLabel, h)(pod)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-" + h, Controller: new(true)}}
	}
}

// replicaSets are told apart by their revisions.
func replicaSets() subsets.Versioned { return subsets.Versioned{{Group: "apps", Kind: "ReplicaSet"}} }

func epoch() metav1.Time { return metav1.NewTime(gen.Epoch()) }

func nodesOf(zones ...string) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, zone := range zones {
		nodes["node-"+zone] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{"zone": zone}}}
	}
	return nodes
}

// snapshot of a Deployment's spread, one minute after it was created.
func snapshot(s *v1beta1.WorkloadSpread, pods ...*corev1.Pod) Snapshot {
	return Snapshot{
		Spread: s, Pods: pods, Nodes: nodesOf("a", "b", "c"), Pause: 5 * time.Minute, Now: gen.Epoch().Add(time.Minute),
		Target: Target{HasCosts: true, Latest: v1beta1.VersionIgnored, Replicas: new(int32(len(pods)))},
	}
}

// compute plans twice, and checks that nothing that was given is changed.
func compute(t *testing.T, s Snapshot) Plan {
	t.Helper()
	spread := s.Spread.DeepCopy()
	var pods []*corev1.Pod
	for _, pod := range s.Pods {
		pods = append(pods, pod.DeepCopy())
	}
	p := Compute(s)
	again := Compute(s)
	assert.Equal(t, p.String(), again.String())
	assert.Equal(t, spread, s.Spread)
	assert.Equal(t, pods, s.Pods)
	return p
}

// count is the text of entries, such as "a 2/0 b 4/-1 +1": replicas/missing, +creating -deleting, ! if closed.
func count(list []v1beta1.SubsetStatus) string {
	var parts []string
	for _, e := range list {
		text := fmt.Sprintf("%s %d/%d", e.Name, e.Replicas, e.MissingReplicas)
		if n := len(e.CreatingPods); n > 0 {
			text += fmt.Sprintf(" +%d", n)
		}
		if n := len(e.DeletingPods); n > 0 {
			text += fmt.Sprintf(" -%d", n)
		}
		if subsets.IsUnschedulable(e.Conditions) {
			text += " !"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}
