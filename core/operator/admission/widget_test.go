package admission

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// widget is the hub version of a kind that exists only in these tests.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              widgetSpec `json:"spec"`
}

type widgetSpec struct {
	Strategy widgetStrategy `json:"strategy"`
	Parts    []widgetPart   `json:"parts,omitempty"`
	Size     int64          `json:"size"`
}

type widgetStrategy struct {
	Type string `json:"type,omitempty"`
}

type widgetPart struct {
	Name   string `json:"name"`
	Colour string `json:"colour,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	copied.Spec.Parts = slices.Clone(w.Spec.Parts)
	return &copied
}

// oldWidget is the spoke: the type of the strategy stands beside it, and parts are unknown.
type oldWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              oldWidgetSpec `json:"spec"`
}

type oldWidgetSpec struct {
	StrategyType string `json:"strategyType,omitempty"`
	Size         int64  `json:"size"`
}

func (w *oldWidget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &copied
}

// partsAnnotation carries the names of the parts through the old version.
const partsAnnotation = "example.com/parts"

func widgetKind() Kind[*widget] {
	return NewKind("example.com", "Widget",
		Hub[widget]("v1beta1"),
		Spoke[widget, oldWidget]("v1alpha1", Conversion[*widget, *oldWidget]{
			ToHub: func(src *oldWidget, dst *widget) error {
				dst.ObjectMeta = src.ObjectMeta
				dst.Spec = widgetSpec{Strategy: widgetStrategy{Type: src.Spec.StrategyType}, Size: src.Spec.Size}
				if names, ok := src.Annotations[partsAnnotation]; ok {
					dst.Annotations = maps.Clone(src.Annotations)
					delete(dst.Annotations, partsAnnotation)
					for name := range strings.SplitSeq(names, ",") {
						dst.Spec.Parts = append(dst.Spec.Parts, widgetPart{Name: name})
					}
				}
				return nil
			},
			FromHub: func(src *widget, dst *oldWidget) error {
				dst.ObjectMeta = src.ObjectMeta
				dst.Spec = oldWidgetSpec{StrategyType: src.Spec.Strategy.Type, Size: src.Spec.Size}
				if len(src.Spec.Parts) > 0 {
					dst.Annotations = maps.Clone(src.Annotations)
					if dst.Annotations == nil {
						dst.Annotations = map[string]string{}
					}
					var names []string
					for _, part := range src.Spec.Parts {
						names = append(names, part.Name)
					}
					dst.Annotations[partsAnnotation] = strings.Join(names, ",")
				}
				return nil
			},
			Path: func(hub string) string { return strings.ReplaceAll(hub, "spec.strategy.type", "spec.strategyType") },
		}))
}
