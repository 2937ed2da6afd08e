package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// filler fills sets with anything that their types can hold, and leaves out anything that may be absent.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(in *intstr.IntOrString, c randfill.Continue) {
			*in = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*in = intstr.FromString([]string{"", "%", "-1%", "30%", "33.3%", "999999999999%", "x"}[c.Intn(7)])
			}
		},
		func(in *resource.Quantity, c randfill.Continue) {
			*in = *resource.NewMilliQuantity(c.Int63(), resource.DecimalSI)
		},
		func(in *metav1.FieldsV1, _ randfill.Continue) { *in = metav1.FieldsV1{} },
		func(in *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*in = []v1beta1.CloneSetUpdateStrategyType{"", v1beta1.RollingUpdate, v1beta1.OnDelete, "x"}[c.Intn(4)]
		},
		func(in *v1beta1.PodUpdatePolicy, c randfill.Continue) {
			*in = []v1beta1.PodUpdatePolicy{"", v1beta1.ReCreate, v1beta1.InPlaceOnly, v1beta1.InPlaceIfPossible, "x"}[c.Intn(5)]
		},
	)
}

// oddSets is how many are validated; each commit has others.
const oddSets = 60

// Issues 1098, 1807 and 1967 of OpenKruise: absent fields and short lists let its webhooks panic.
func TestNoSetIsTooOddToBeValidated(t *testing.T) {
	refused := 0
	sets := seeds.Each(t, oddSets, func(t *testing.T, seed uint64) {
		t.Helper()
		var set, old v1beta1.CloneSet
		filler(int64(seed)).Fill(&set)
		filler(int64(seed + 1)).Fill(&old)
		if seed%2 == 0 { // an edit of the same selector reaches the rules of updates in place
			old = *set.DeepCopy()
			filler(int64(seed + 1)).Fill(&set.Spec.Template)
		}
		for _, defaulted := range []bool{false, true} {
			if defaulted {
				Default(&set)
			}
			change := podtemplate.Change{Before: &old.Spec.Template, After: &set.Spec.Template}
			require.NotPanics(t, func() {
				for _, version := range []string{"v1alpha1", "v1beta1"} {
					refused += len(Validate(&set, nil, Facts{Version: version}))
					Validate(&set, &old, Facts{Version: version, Template: change})
					Warnings(&set, nil, version)
				}
			})
		}
	})
	assert.True(t, sets < oddSets || refused > 0, "odd sets have faults")
}
