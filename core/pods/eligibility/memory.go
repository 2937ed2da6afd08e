package eligibility

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory remembers verdicts from pass to pass, so that an event of one node costs the evaluation of one node. The zero
// value is ready for use. It is safe for concurrent use.
type Memory struct {
	// Rules are the rules of the sets.
	Rules Rules

	mu   sync.Mutex
	sets map[types.UID]*knownSet
}

// knownSet has the verdicts on nodes for one set at one generation of its spec.
type knownSet struct {
	mu         sync.Mutex
	generation int64
	template   *Template
	verdicts   map[string]knownVerdict // by the name of the node
}

type knownVerdict struct {
	uid     types.UID
	version string
	verdict Verdict
}

// Verdicts are the verdicts on the nodes, in their order, for the present template of the set. Nodes that are not among
// them are forgotten.
func (m *Memory) Verdicts(set metav1.Object, template *corev1.PodTemplateSpec, nodes []*corev1.Node) []Verdict {
	known := m.of(set)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.renew(set.GetGeneration(), template, m.Rules)
	all := make([]Verdict, len(nodes))
	for i, node := range nodes {
		v, ok := known.verdicts[node.Name]
		if !ok || v.uid != node.UID || v.version != node.ResourceVersion {
			v = knownVerdict{node.UID, node.ResourceVersion, known.template.Of(node)}
			known.verdicts[node.Name] = v
		}
		all[i] = v.verdict
	}
	if len(known.verdicts) > len(nodes) {
		known.keep(nodes)
	}
	return all
}

// Template is the compiled template of the set.
func (m *Memory) Template(set metav1.Object, template *corev1.PodTemplateSpec) *Template {
	known := m.of(set)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.renew(set.GetGeneration(), template, m.Rules)
	return known.template
}

// Forget drops a set that is gone.
func (m *Memory) Forget(set types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, set)
}

func (m *Memory) of(set metav1.Object) *knownSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.sets[set.GetUID()]
	if known == nil {
		known = &knownSet{}
		if m.sets == nil {
			m.sets = map[types.UID]*knownSet{}
		}
		m.sets[set.GetUID()] = known
	}
	return known
}

// renew forgets the results for another generation.
func (s *knownSet) renew(generation int64, template *corev1.PodTemplateSpec, rules Rules) {
	if s.template == nil || s.generation != generation {
		s.generation = generation
		s.template = Compile(template, rules)
		s.verdicts = map[string]knownVerdict{}
	}
}

// keep forgets all nodes but these.
func (s *knownSet) keep(nodes []*corev1.Node) {
	verdicts := make(map[string]knownVerdict, len(nodes))
	for _, node := range nodes {
		verdicts[node.Name] = s.verdicts[node.Name]
	}
	s.verdicts = verdicts
}
