package ordering

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

func TestValidatePriority(t *testing.T) {
	good := map[string]string{"app": "web"}
	weights := func(terms ...workload.UpdatePriorityWeightTerm) *workload.UpdatePriorityStrategy {
		return &workload.UpdatePriorityStrategy{WeightPriority: terms}
	}
	bothLists := weights(weightTerm(1, good))
	bothLists.OrderPriority = orderBy("a").OrderPriority
	badSelector := workload.UpdatePriorityWeightTerm{Weight: 1, MatchSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
	}}
	cases := []struct {
		name     string
		priority *workload.UpdatePriorityStrategy
		want     string // empty: valid
	}{
		{"absent", nil, ""},
		{"empty", &workload.UpdatePriorityStrategy{}, ""},
		{"weights at their bounds", weights(weightTerm(0, good), weightTerm(100, good)), ""},
		{"order", orderBy("a", "b"), ""},
		{"both lists", bothLists, "only one of weightPriority and orderPriority can be used"},
		{"weight too large", weights(weightTerm(101, good)), "weight must be valid number in the range 1-100"},
		{"weight negative", weights(weightTerm(-1, good)), "weight must be valid number in the range 1-100"},
		{"empty selector", weights(weightTerm(1, nil)), "selector can not be empty"},
		{"bad selector", weights(badSelector), `invalid selector: "Like" is not a valid label selector operator`},
		{"empty key", orderBy("a", ""), "order key can not be empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			expectRequired(t, c.want, ValidatePriority(c.priority, field.NewPath("spec", "priorityStrategy")), "spec.priorityStrategy")
		})
	}
}

func TestValidateScatter(t *testing.T) {
	term := workload.UpdateScatterTerm{Key: "a", Value: "1"}
	cases := []struct {
		name    string
		scatter workload.UpdateScatterStrategy
		want    string
	}{
		{"absent", nil, ""},
		{"two values of one key", workload.UpdateScatterStrategy{term, {Key: "a", Value: "2"}}, ""},
		{"empty key", workload.UpdateScatterStrategy{{Value: "1"}}, "key should not be empty"},
		{"twice", workload.UpdateScatterStrategy{term, term}, "duplicated key a and value 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			expectRequired(t, c.want, ValidateScatter(c.scatter, field.NewPath("spec", "scatterStrategy")), "spec.scatterStrategy")
		})
	}
}

func expectRequired(t *testing.T, want string, errs field.ErrorList, path string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, errs)
		return
	}
	require.Len(t, errs, 1)
	assert.Equal(t, field.ErrorTypeRequired, errs[0].Type)
	assert.Equal(t, path, errs[0].Field)
	assert.Equal(t, want, errs[0].Detail)
}
