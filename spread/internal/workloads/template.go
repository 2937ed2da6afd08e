package workloads

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
)

// Template returns the template of a workload's pods with the volumes of its claim templates. It is nil for a kind that the
// ConfigMap allows: the spec may have any form.
func (r *Reader) Template(ctx context.Context, workload *metav1.PartialObjectMetadata) (*podtemplate.Template, error) {
	if !slices.Contains(BuiltIn(), workload.GroupVersionKind().GroupKind()) {
		return nil, nil
	}
	object, err := r.spec(ctx, workload)
	if err != nil {
		return nil, err
	}
	return templateOf(object)
}

// SelectorKeys returns the keys of the labels by which a workload, or an object between it and its pods, selects them, if
// that is in spec.selector.
func (r *Reader) SelectorKeys(ctx context.Context, workload *metav1.PartialObjectMetadata) ([]string, error) {
	object, err := r.spec(ctx, workload)
	if err != nil {
		return nil, err
	}
	return selectorKeys(object), nil
}

func selectorKeys(object map[string]any) (keys []string) {
	found, _, _ := unstructured.NestedMap(object, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(found, selector) != nil {
		return nil
	}
	keys = slices.Collect(maps.Keys(selector.MatchLabels))
	for i := range selector.MatchExpressions {
		keys = append(keys, selector.MatchExpressions[i].Key)
	}
	return keys
}

func templateOf(object map[string]any) (*podtemplate.Template, error) {
	var known struct {
		Spec struct {
			Template             corev1.PodTemplateSpec         `json:"template"`
			VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &known); err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	return &podtemplate.Template{Pod: &known.Spec.Template, Volumes: podtemplate.ClaimVolumes(known.Spec.VolumeClaimTemplates)}, nil
}
