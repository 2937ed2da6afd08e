package subsets

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// termOf is the term that is written like "zone In a,b; gpu Exists".
func termOf(text string) *corev1.NodeSelectorTerm {
	term := &corev1.NodeSelectorTerm{}
	for part := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(part)
		r := corev1.NodeSelectorRequirement{Key: words[0], Operator: corev1.NodeSelectorOperator(words[1])}
		if len(words) > 2 {
			r.Values = strings.Split(words[2], ",")
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	return term
}

func TestSubsetsThatRuleOutAllNodes(t *testing.T) {
	for name, c := range map[string]struct {
		selector map[string]string
		terms    []string
		subset   string
		patch    string
		want     []string
	}{
		"nothing wanted":             {subset: "zone In a"},
		"the same":                   {selector: map[string]string{"zone": "a"}, subset: "zone In a,b"},
		"another value":              {selector: map[string]string{"zone": "b"}, subset: "zone In a", want: []string{"zone"}},
		"several keys":               {selector: map[string]string{"zone": "b", "arch": "arm"}, subset: "zone In a; arch NotIn arm; gpu Exists", want: []string{"arch", "zone"}},
		"another key":                {selector: map[string]string{"arch": "arm"}, subset: "zone In a"},
		"one of two terms":           {terms: []string{"zone In b", "zone In a"}, subset: "zone In a"},
		"all terms":                  {terms: []string{"zone In b", "arch In arm; zone In c"}, subset: "zone In a", want: []string{"zone"}},
		"lists that meet nowhere":    {terms: []string{"zone In b,c"}, subset: "zone In a,d", want: []string{"zone"}},
		"lists less others":          {terms: []string{"zone In a,b"}, subset: "zone NotIn a,b,c", want: []string{"zone"}},
		"no label at all":            {terms: []string{"zone NotIn a"}, subset: "zone DoesNotExist"},
		"a label and none":           {terms: []string{"zone Exists"}, subset: "zone DoesNotExist", want: []string{"zone"}},
		"a value and no label":       {selector: map[string]string{"zone": "a"}, subset: "zone DoesNotExist", want: []string{"zone"}},
		"others than some":           {terms: []string{"zone Exists; zone NotIn a"}, subset: "zone NotIn b"},
		"numbers":                    {terms: []string{"cores Gt 4"}, subset: "cores Lt 6"},
		"no number between":          {terms: []string{"cores Gt 4"}, subset: "cores Lt 5", want: []string{"cores"}},
		"a number out of bounds":     {selector: map[string]string{"cores": "4"}, subset: "cores Gt 4", want: []string{"cores"}},
		"no number":                  {selector: map[string]string{"cores": "many"}, subset: "cores Lt 4", want: []string{"cores"}},
		"the template's own fault":   {terms: []string{"zone In b; zone In c"}, subset: "zone In a"},
		"a patch that makes it fit":  {selector: map[string]string{"zone": "b"}, subset: "zone In a", patch: `{"spec":{"nodeSelector":{"zone":"a"}}}`},
		"a patch that contradicts":   {selector: map[string]string{"zone": "a"}, subset: "arch Exists", patch: `{"spec":{"nodeSelector":{"arch":"","zone":"b"}}}`},
		"a patch against the subset": {subset: "zone In a", patch: `{"spec":{"nodeSelector":{"zone":"b"}}}`, want: []string{"zone"}},
		"a patch that does not fit":  {selector: map[string]string{"zone": "b"}, subset: "zone In a", patch: `{"spec":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := gen.Pod("web")
			pod.Spec.NodeSelector, pod.Spec.Affinity = c.selector, nil
			if len(c.terms) > 0 {
				required := &corev1.NodeSelector{}
				for _, text := range c.terms {
					required.NodeSelectorTerms = append(required.NodeSelectorTerms, *termOf(text))
				}
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
			}
			before := pod.DeepCopy()
			subset := &v1beta1.WorkloadSpreadSubset{Name: "a", RequiredNodeSelector: termOf(c.subset)}
			subset.Patch.Raw = []byte(c.patch)
			assert.Equal(t, c.want, Conflict(pod, subset))
			require.Equal(t, before, pod)
		})
	}
}
