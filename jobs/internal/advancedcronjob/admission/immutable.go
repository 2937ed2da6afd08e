package admission

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	broadcastadmission "github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/admission"
)

const immutable = "immutable; create a new AdvancedCronJob"

// firstDifference returns where two values differ, nil if they do not. Differences of nothing and something empty do
// not count.
func firstDifference(before, after any, at *field.Path) *field.Path {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	switch a := before.(type) {
	case map[string]any:
		b, ok := after.(map[string]any)
		if !ok {
			return at
		}
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if found := firstDifference(a[key], b[key], at.Child(key)); found != nil {
				return found
			}
		}
		return nil
	case []any:
		b, ok := after.([]any)
		if !ok || len(a) != len(b) {
			return at
		}
		for i := range a {
			if found := firstDifference(a[i], b[i], at.Index(i)); found != nil {
				return found
			}
		}
		return nil
	}
	return at
}

// forbidDifference returns an error if two templates differ.
func forbidDifference(before, after any, at *field.Path) (field.ErrorList, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	a, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("read the stored template: %w", err)
	}
	b, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	if found := firstDifference(a, b, at); found != nil {
		return field.ErrorList{field.Forbidden(found, immutable)}, nil
	}
	return nil, nil
}

// withJobDefaults returns the template as Jobs are made from it, but for the defaults of the cluster. Whether it names the
// policy that is meant anyway, as OpenKruise has filled it in, is no difference.
func withJobDefaults(t *batchv1.JobTemplateSpec) *batchv1.JobTemplateSpec {
	template := t.DeepCopy()
	podspec.DefaultAllToPullAlways(&template.Spec.Template.Spec)
	return template
}

// withBroadcastDefaults returns the template with the defaults that its jobs get, except for the cluster's defaults.
func withBroadcastDefaults(t *v1beta1.BroadcastJobTemplateSpec) *v1beta1.BroadcastJobTemplateSpec {
	template := t.DeepCopy()
	broadcastadmission.DefaultSpec(&template.Spec)
	podspec.DefaultAllToPullAlways(&template.Spec.Template.Spec)
	return template
}
