package eligibility

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-1", ResourceVersion: "1", Labels: map[string]string{"color": "blue"}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	for _, c := range change {
		c(n)
	}
	return n
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "7", Effect: effect})
	}
}

func affinity(terms ...corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func needs(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func template(change ...func(*corev1.PodSpec)) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

func tolerating(t corev1.Toleration) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Tolerations = append(s.Tolerations, t) }
}

func TestVerdicts(t *testing.T) {
	run, stay, no := Verdict{true, true}, Verdict{false, true}, Verdict{}
	nodeName := func(name string) func(*corev1.PodSpec) { return func(s *corev1.PodSpec) { s.NodeName = name } }
	selector := func(color string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"color": color} }
	}
	hostNetwork := func(s *corev1.PodSpec) { s.HostNetwork = true }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	notReady := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	}
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		node     *corev1.Node
		want     Verdict
	}{
		{"any node", template(), node(), run},
		{"its name", template(nodeName("node-1")), node(), run},
		{"another name", template(nodeName("node-2")), node(), no},
		{"node selector", template(selector("blue")), node(), run},
		{"another color", template(selector("green")), node(), no},
		{"affinity", template(affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", corev1.NodeSelectorOpIn, "blue")}})), node(), run},
		{"affinity of others", template(affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", corev1.NodeSelectorOpNotIn, "blue")}})), node(), no},
		{"one of two terms", template(affinity(
			corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", corev1.NodeSelectorOpIn, "green")}},
			corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{needs("metadata.name", corev1.NodeSelectorOpIn, "node-1")}},
		)), node(), run},
		{"no terms", template(affinity()), node(), no},
		{"an affinity that nobody can read", template(affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", "Like", "b*")}})), node(), no},
		{"selector and affinity", template(selector("green"), affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", corev1.NodeSelectorOpExists)}})), node(), no},
		{"NoSchedule", template(), node(taint("busy", corev1.TaintEffectNoSchedule)), stay},
		{"NoExecute", template(), node(taint("busy", corev1.TaintEffectNoExecute)), no},
		{"both", template(), node(taint("busy", corev1.TaintEffectNoSchedule), taint("broken", corev1.TaintEffectNoExecute)), no},
		{"PreferNoSchedule", template(), node(taint("busy", corev1.TaintEffectPreferNoSchedule)), run},
		{"tolerated", template(tolerating(corev1.Toleration{Key: "busy", Operator: corev1.TolerationOpExists})), node(taint("busy", corev1.TaintEffectNoExecute)), run},
		{"tolerated by value", template(tolerating(corev1.Toleration{Key: "busy", Value: "7"})), node(taint("busy", corev1.TaintEffectNoSchedule)), run},
		{"tolerated by comparison", template(tolerating(corev1.Toleration{Key: "busy", Operator: corev1.TolerationOpLt, Value: "9"})), node(taint("busy", corev1.TaintEffectNoSchedule)), run},
		{"not tolerated by comparison", template(tolerating(corev1.Toleration{Key: "busy", Operator: corev1.TolerationOpLt, Value: "3"})), node(taint("busy", corev1.TaintEffectNoSchedule)), stay},
		{"cordoned", template(), node(cordoned, taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)), run},
		{"not ready", template(), node(notReady, taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)), run},
		{"not ready yet", template(), node(notReady, taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)), stay},
		{"short of everything", template(), node(taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)), run},
		{"without network", template(), node(taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), stay},
		{"without network that it needs", template(hostNetwork), node(taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), run},
		{"another name, though tainted", template(nodeName("node-2")), node(taint("busy", corev1.TaintEffectNoSchedule)), no},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := c.template.DeepCopy()
			assert.Equal(t, c.want, Compile(c.template, ForDaemons).Of(c.node))
			assert.Equal(t, before, c.template, "the template was changed")
		})
	}
}

// Jobs wait where daemons run: they are in no hurry, and their pods tolerate what is written.
func TestVerdictsForJobs(t *testing.T) {
	run, stay, no := Verdict{true, true}, Verdict{false, true}, Verdict{}
	selector := func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"color": "green"} }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	amounts := func(cpu, pods string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods)}
		}
	}
	asks := func(cpu string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}})
		}
	}
	overhead := func(s *corev1.PodSpec) { s.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")} }
	memory := func(s *corev1.PodSpec) {
		s.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")},
		}}}
	}
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	limits := func(name corev1.ResourceName, amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(amount)}}
	}
	limited := func(name corev1.ResourceName, amount string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Resources: limits(name, amount)})
		}
	}
	initially := func(amount string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Resources: limits(corev1.ResourceCPU, amount)}}
		}
	}
	whole := func(name corev1.ResourceName, amount string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Resources = new(limits(name, amount)) }
	}
	upTo := func(amount string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
		}
	}
	gpus := func(n *corev1.Node) { n.Status.Allocatable[gpu] = resource.MustParse("2") }
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		node     *corev1.Node
		want     Verdict
	}{
		{"any node", template(), node(), run},
		{"a limit is a request", template(limited(gpu, "1")), node(amounts("2", "1")), stay},
		{"a limit that the node has", template(limited(gpu, "2")), node(amounts("2", "1"), gpus), run},
		{"limits add up", template(limited(gpu, "1"), limited(gpu, "2")), node(amounts("2", "1"), gpus), stay},
		{"a limit beside a request", template(asks("1"), upTo("3")), node(amounts("2", "1")), run},
		{"a limit of an init container", template(asks("1"), initially("3")), node(amounts("2", "1")), stay},
		{"a limit of the pod", template(whole(corev1.ResourceCPU, "3")), node(amounts("2", "1")), stay},
		{"a limit of the pod beside a request", template(asks("1"), whole(corev1.ResourceCPU, "3")), node(amounts("2", "1")), run},
		{"another color", template(selector), node(), no},
		{"NoSchedule", template(), node(taint("busy", corev1.TaintEffectNoSchedule)), stay},
		{"NoExecute", template(), node(taint("busy", corev1.TaintEffectNoExecute)), no},
		{"cordoned", template(), node(cordoned), stay},
		{"cordoned, with its taint", template(), node(cordoned, taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)), stay},
		{"cordons tolerated", template(tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})), node(cordoned), run},
		{"not ready", template(), node(taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), stay},
		{"unreachable", template(), node(taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)), stay},
		{"short of memory", template(), node(taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)), stay},
		{"enough", template(asks("1"), asks("1")), node(amounts("2", "1")), run},
		{"too small", template(asks("1"), asks("1500m")), node(amounts("2", "1")), stay},
		{"too small with the overhead", template(asks("1"), asks("1"), overhead), node(amounts("2", "1")), stay},
		{"what the node does not have", template(memory), node(amounts("2", "1")), stay},
		{"no pods", template(), node(amounts("2", "0")), stay},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, Compile(c.template, ForJobs).Of(c.node)) })
	}
}

func TestDefaultTolerationsHoldWithoutEnd(t *testing.T) {
	given := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		{Key: "busy", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(30))},
	}
	all := WithDefaults(given, false)
	assert.Len(t, all, 7)
	assert.Nil(t, all[0].TolerationSeconds)
	assert.Equal(t, int64(30), *all[1].TolerationSeconds, "others are the template's affair")
	assert.Equal(t, int64(300), *given[0].TolerationSeconds, "the list given was changed")
}

func TestDefaultTolerationsAreAddedOnce(t *testing.T) {
	own := corev1.Toleration{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	all := WithDefaults([]corev1.Toleration{own}, true)
	assert.Len(t, all, 7)
	assert.Equal(t, all, WithDefaults(all, true))
	assert.Len(t, WithDefaults(nil, false), 6)
}

// given is a set of a generation, and nodes.
func given(generation int64, n int) (*corev1.ConfigMap, []*corev1.Node) {
	set := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "set", Generation: generation}}
	var nodes []*corev1.Node
	for i := range n {
		nodes = append(nodes, node(func(o *corev1.Node) { o.Name = fmt.Sprintf("node-%04d", i) }))
	}
	return set, nodes
}

// What is remembered is believed as long as the node's version and the set's generation stay.
func TestMemoryEvaluatesWhatHasChanged(t *testing.T) {
	var m Memory
	set, nodes := given(1, 2)
	blue := template(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"color": "blue"} })
	run := Verdict{true, true}
	assert.Equal(t, []Verdict{run, run}, m.Verdicts(set, blue, nodes))

	nodes[0].Labels = nil
	assert.Equal(t, []Verdict{run, run}, m.Verdicts(set, blue, nodes), "at the same version it is not looked at again")
	nodes[0].ResourceVersion = "2"
	assert.Equal(t, []Verdict{{}, run}, m.Verdicts(set, blue, nodes))
	nodes[1].Labels, nodes[1].UID = nil, "another one of the same name"
	assert.Equal(t, []Verdict{{}, {}}, m.Verdicts(set, blue, nodes))

	assert.Equal(t, []Verdict{{}, {}}, m.Verdicts(set, template(), nodes))
	set.Generation = 2
	assert.Equal(t, []Verdict{run, run}, m.Verdicts(set, template(), nodes))

	assert.Equal(t, []Verdict{run}, m.Verdicts(set, template(), nodes[1:]))
	assert.Len(t, m.sets["set"].verdicts, 1, "nodes that are gone are forgotten")
	m.Forget("set")
	assert.Empty(t, m.sets)
}

// An event of one of 5,000 nodes costs the evaluation of one.
func BenchmarkVerdictsAfterOneNodeHasChanged(b *testing.B) {
	var m Memory
	set, nodes := given(1, 5000)
	blue := template(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"color": "blue"} })
	m.Verdicts(set, blue, nodes)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		nodes[i%len(nodes)].ResourceVersion = fmt.Sprint(i + 2)
		m.Verdicts(set, blue, nodes)
	}
}

func BenchmarkEveryNode(b *testing.B) {
	_, nodes := given(1, 5000)
	blue := Compile(template(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"color": "blue"} }), ForDaemons)
	b.ReportAllocs()
	for b.Loop() {
		for _, n := range nodes {
			blue.Of(n)
		}
	}
}
