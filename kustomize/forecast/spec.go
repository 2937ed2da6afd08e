package forecast

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// copySpec gives a set the spec, the labels and the annotations of another one of its type.
func copySpec(from, to action.Object) {
	spec := reflect.ValueOf(to).Elem().FieldByName("Spec")
	spec.Set(reflect.ValueOf(from).Elem().FieldByName("Spec"))
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
}

// MinReadySeconds is how long a pod of a set must be ready until it is available.
func MinReadySeconds(set action.Object) int32 {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return 0
	}
	for _, path := range [][]string{{"spec", "minReadySeconds"}, {"spec", "updateStrategy", "rollingUpdate", "minReadySeconds"}} {
		if n, found, err := unstructured.NestedInt64(object, path...); err == nil && found {
			return int32(n)
		}
	}
	return 0
}
