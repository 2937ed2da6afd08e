package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Apply returns old after the patch; old stays as it is. Unknown fields are errors, so that a misspelt patch
// fails. Only the parts of the object that the patch names go through JSON.
func Apply(old action.Object, patch action.Patch) (action.Object, error) {
	body, err := plainJSON(patch.Body)
	if err != nil {
		return nil, err
	}
	merge, err := mergeFor(old, patch.Type)
	if err != nil {
		return nil, err
	}
	if u, ok := old.(*unstructured.Unstructured); ok {
		n := u.DeepCopy()
		n.Object, err = merge(n.Object, body)
		return n, err
	}
	part := reflect.New(reflect.TypeOf(old).Elem())
	copyNamed(part.Elem(), reflect.ValueOf(old).Elem(), body, 0)
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part.Interface())
	if err != nil {
		return nil, err
	}
	after, err := merge(before, body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("apply patch: %v", err))
	}
	patched := reflect.New(reflect.TypeOf(old).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(after, patched.Interface(), true); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read patched object: %v", err))
	}
	n := reflect.New(reflect.TypeOf(old).Elem())
	n.Elem().Set(reflect.ValueOf(old).Elem())
	copyNamed(n.Elem(), patched.Elem(), body, 0)
	return n.Interface().(action.Object), nil
}

// plainJSON returns the body as a server reads it.
func plainJSON(body map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	plain := unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(raw, &plain.Object); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	return wholeNumbers(plain.Object).(map[string]any), nil
}

// wholeNumbers turns numbers without a fraction into int64, as decoders of Kubernetes do.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = wholeNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

type mergeFunc func(original, patch map[string]any) (map[string]any, error)

func mergeFor(o action.Object, patchType types.PatchType) (mergeFunc, error) {
	switch {
	case patchType == types.MergePatchType:
		return func(original, patch map[string]any) (map[string]any, error) { return mergeJSON(original, patch), nil }, nil
	case (patchType == "" || patchType == types.StrategicMergePatchType) && isBuiltIn(o):
		return func(original, patch map[string]any) (map[string]any, error) {
			return strategicpatch.StrategicMergeMapPatch(original, patch, o)
		}, nil
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("kind %s does not take patches of type %q", KindOf(o), patchType),
	}}
}

// mergeJSON is RFC 7386 over maps; it changes original.
func mergeJSON(original, patch map[string]any) map[string]any {
	for k, v := range patch {
		if v == nil {
			delete(original, k)
			continue
		}
		if change, ok := v.(map[string]any); ok {
			have, _ := original[k].(map[string]any)
			if have == nil {
				have = map[string]any{}
			}
			v = mergeJSON(have, change)
		}
		original[k] = v
	}
	return original
}

// copyNamed copies the fields that the body names, of the object and of its metadata, spec and status.
func copyNamed(to, from reflect.Value, body map[string]any, depth int) {
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		change, named := body[name]
		if !named || name == "" {
			continue
		}
		inner, ok := change.(map[string]any)
		if ok && depth == 0 && (name == "metadata" || name == "spec" || name == "status") && to.Field(i).Kind() == reflect.Struct {
			copyNamed(to.Field(i), from.Field(i), inner, depth+1)
			continue
		}
		to.Field(i).Set(from.Field(i))
	}
}
