package conversion

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// beginning is the time of a condition without one.
const beginning = "1970-01-01T00:00:00Z"

// renamed are the fields of a subset by their names in v1alpha1.
var renamed = map[string]string{ //nolint:gochecknoglobals // a constant
	"requiredNodeSelectorTerm": "requiredNodeSelector", "preferredNodeSelectorTerms": "preferredNodeSelector",
}

// WorkloadSpreads returns the kind in its versions.
func WorkloadSpreads() admission.Kind[*v1beta1.WorkloadSpread] {
	return admission.NewKind(contract.AppsGroup, v1beta1.WorkloadSpreadKind,
		admission.Hub[v1beta1.WorkloadSpread](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.WorkloadSpread](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.WorkloadSpread, *v1alpha1.WorkloadSpread]{
			ToHub: func(src *v1alpha1.WorkloadSpread, dst *v1beta1.WorkloadSpread) error {
				err := conversion.ViaJSON(src, dst, toHub)
				dst.SetGroupVersionKind(schema.GroupVersionKind{})
				return err
			},
			FromHub: func(src *v1beta1.WorkloadSpread, dst *v1alpha1.WorkloadSpread) error {
				err := conversion.ViaJSON(src, dst, fromHub)
				dst.SetGroupVersionKind(schema.GroupVersionKind{})
				return err
			},
			Path: oldPath,
		}))
}

// Convert returns the JSON of a WorkloadSpread in the wanted apiVersion.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	return conversion.Versions{
		Hub: v1beta1.GroupVersion.String(), Spoke: v1alpha1.GroupVersion.String(), ToHub: toHub, FromHub: fromHub,
	}.Convert(raw, apiVersion)
}

// oldPath returns the path of a field in v1alpha1.
func oldPath(hub string) string {
	for before, now := range renamed {
		if i := strings.Index(hub, "."+now); i >= 0 {
			return hub[:i] + "." + before + hub[i+1+len(now):]
		}
	}
	return hub
}

func toHub(src conversion.Object) (conversion.Object, error) {
	return convert(src, func(subset conversion.Object) {
		for before, now := range renamed {
			rename(subset, before, now)
		}
	}, func(condition conversion.Object) {
		for name, value := range map[string]string{
			"reason":             v1beta1.ReasonUnknown,
			"message":            "",
			"lastTransitionTime": beginning,
		} {
			if text, ok := condition[name].(string); !ok || text == "" {
				condition[name] = value
			}
		}
	}), nil
}

func fromHub(src conversion.Object) (conversion.Object, error) {
	return convert(src, func(subset conversion.Object) {
		for before, now := range renamed {
			rename(subset, now, before)
		}
	}, func(conversion.Object) {}), nil
}

func rename(o conversion.Object, from, to string) {
	if value, ok := o[from]; ok {
		o[to] = value
		delete(o, from)
	}
}

// convert returns a copy of the object with changed subsets and conditions. Unchanged values are shared.
func convert(src conversion.Object, subset, condition func(conversion.Object)) conversion.Object {
	dst := maps.Clone(src)
	if spec, ok := src["spec"].(conversion.Object); ok {
		dst["spec"] = withList(spec, "subsets", subset)
	}
	status, ok := src["status"].(conversion.Object)
	if !ok {
		return dst
	}
	withConditions := func(entry conversion.Object) {
		maps.Copy(entry, withList(entry, "conditions", condition))
	}
	after := withList(withList(status, "conditions", condition), "subsetStatuses", withConditions)
	if versions, ok := status["versionedSubsetStatuses"].(conversion.Object); ok {
		converted := maps.Clone(versions)
		for version := range versions {
			converted = withList(converted, version, withConditions)
		}
		after["versionedSubsetStatuses"] = converted
	}
	dst["status"] = after
	return dst
}

// withList returns a copy of the object in which each element of a list is a changed copy.
func withList(src conversion.Object, name string, change func(conversion.Object)) conversion.Object {
	dst := maps.Clone(src)
	list, ok := src[name].([]any)
	if !ok {
		return dst
	}
	changed := make([]any, len(list))
	for i := range list {
		changed[i] = list[i]
		if element, ok := list[i].(conversion.Object); ok {
			element = maps.Clone(element)
			change(element)
			changed[i] = element
		}
	}
	dst[name] = changed
	return dst
}
