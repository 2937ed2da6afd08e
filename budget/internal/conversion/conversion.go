package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Budgets returns the kind PodUnavailableBudget in its versions.
func Budgets() admission.Kind[*v1beta1.PodUnavailableBudget] {
	return admission.NewKind(v1beta1.GroupVersion.Group, v1beta1.PodUnavailableBudgetKind,
		admission.Hub[v1beta1.PodUnavailableBudget](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.PodUnavailableBudget](v1alpha1.GroupVersion.Version,
			admission.Conversion[*v1beta1.PodUnavailableBudget, *v1alpha1.PodUnavailableBudget]{
				ToHub: func(src *v1alpha1.PodUnavailableBudget, dst *v1beta1.PodUnavailableBudget) error {
					defer dst.SetGroupVersionKind(schema.GroupVersionKind{})
					return conversion.ViaJSON(src, dst, toHub)
				},
				FromHub: func(src *v1beta1.PodUnavailableBudget, dst *v1alpha1.PodUnavailableBudget) error {
					defer dst.SetGroupVersionKind(schema.GroupVersionKind{})
					return conversion.ViaJSON(src, dst, fromHub)
				},
				Path: path,
			}))
}

// Convert returns the JSON of a PodUnavailableBudget in the wanted apiVersion.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	return conversion.Versions{
		Hub: v1beta1.GroupVersion.String(), Spoke: v1alpha1.GroupVersion.String(), ToHub: toHub, FromHub: fromHub,
	}.Convert(raw, apiVersion)
}

// promoted is a field of the hub's spec that is an annotation in v1alpha1.
type promoted struct {
	field, annotation string
	// read returns the field's value, and false for a text that means none or cannot be read: it stays where it is.
	read func(text string) (value any, ok bool)
	// write returns the annotation's text, and false for a value that means none.
	write func(value any) (text string, ok bool)
}

func allPromoted() []promoted {
	return []promoted{
		{"protectOperations", v1beta1.ProtectOperationsAnnotation, readOperations, writeOperations},
		{"protectTotalReplicas", v1beta1.ProtectTotalReplicasAnnotation, readReplicas, writeReplicas},
		{"ignoredPodSelector", v1beta1.IgnoredPodSelectorAnnotation, readSelector, writeJSON},
	}
}

// path maps a path of the hub to the one in v1alpha1.
func path(hub string) string {
	for _, p := range allPromoted() {
		if hub == "spec."+p.field || strings.HasPrefix(hub, "spec."+p.field+"[") || strings.HasPrefix(hub, "spec."+p.field+".") {
			return "metadata.annotations[" + p.annotation + "]"
		}
	}
	return hub
}

// toHub turns annotations into fields.
func toHub(src conversion.Object) (conversion.Object, error) {
	dst := maps.Clone(src)
	for _, p := range allPromoted() {
		text, ok := conversion.AnnotationIn(src, p.annotation)
		if !ok {
			continue
		}
		value, ok := p.read(text)
		if !ok {
			continue
		}
		conversion.RemoveAnnotationFrom(dst, p.annotation)
		dst["spec"] = conversion.WithMembers(conversion.Member(dst, "spec"), conversion.Object{p.field: value}, p.field)
	}
	return dst, nil
}

// fromHub turns fields into annotations. An annotation of a field that is set has no effect, and is removed.
func fromHub(src conversion.Object) (conversion.Object, error) {
	dst := maps.Clone(src)
	for _, p := range allPromoted() {
		value, ok := conversion.Member(src, "spec")[p.field]
		if !ok {
			continue
		}
		dst["spec"] = conversion.WithMembers(conversion.Member(dst, "spec"), nil, p.field)
		text, ok := p.write(value)
		if !ok {
			continue
		}
		annotations := conversion.WithMembers(conversion.Member(dst, "metadata", "annotations"), conversion.Object{p.annotation: text}, p.annotation)
		dst["metadata"] = conversion.WithMembers(conversion.Member(dst, "metadata"), conversion.Object{"annotations": annotations}, "annotations")
	}
	return dst, nil
}

// Operations returns the operations that a text names, and an error for one that is none of them. Spaces and empty items
// mean nothing.
func Operations(text string) ([]v1beta1.PubOperation, error) {
	var all []v1beta1.PubOperation
	for item := range strings.SplitSeq(text, ",") {
		switch op := v1beta1.PubOperation(strings.TrimSpace(item)); op {
		case "":
		case v1beta1.DeleteOperation, v1beta1.UpdateOperation, v1beta1.EvictOperation, v1beta1.ResizeOperation:
			all = append(all, op)
		default:
			return nil, fmt.Errorf("unsupported operation %q: use DELETE, UPDATE, EVICT or RESIZE", op)
		}
	}
	return all, nil
}

// Replicas returns the number that a text has, at least 1.
func Replicas(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("must be a whole number from 1 to 2147483647")
	}
	return int32(n), nil
}

// IgnoredPods returns the selector that a text has as JSON. A key that the field does not have is an error.
func IgnoredPods(text string) (*metav1.LabelSelector, error) {
	var selector *metav1.LabelSelector
	unknown, err := kjson.UnmarshalStrict([]byte(text), &selector)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("must be a label selector as JSON: %w", err)
	}
	if selector == nil {
		return nil, errors.New("must be a label selector as JSON")
	}
	return selector, nil
}

// Lost describes the values that an update through v1alpha1 would remove because the client has dropped their annotation.
// It is empty if nothing is lost, or if the object accepts the loss.
func Lost(stored, updated *v1beta1.PodUnavailableBudget) string {
	if stored.Spec.IgnoredPodSelector == nil || updated.Spec.IgnoredPodSelector != nil || conversion.AcceptsLoss(updated) {
		return ""
	}
	return conversion.Loss("ignoredPodSelector, and this update would remove it", v1beta1.IgnoredPodSelectorAnnotation)
}

func readOperations(text string) (any, bool) {
	all, err := Operations(text)
	if err != nil || len(all) == 0 {
		return nil, false
	}
	list := make([]any, 0, len(all))
	for _, op := range all {
		list = append(list, string(op))
	}
	return list, true
}

func writeOperations(value any) (string, bool) {
	list, _ := value.([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), len(texts) > 0
}

func readReplicas(text string) (any, bool) {
	n, err := Replicas(text)
	return int64(n), err == nil
}

func writeReplicas(value any) (string, bool) {
	n, ok := value.(int64)
	return strconv.FormatInt(n, 10), ok
}

func readSelector(text string) (any, bool) {
	if _, err := IgnoredPods(text); err != nil {
		return nil, false
	}
	var selector map[string]any
	err := json.Unmarshal([]byte(text), &selector)
	return selector, err == nil
}

func writeJSON(value any) (string, bool) {
	text, err := json.Marshal(value)
	return string(text), err == nil && value != nil
}
