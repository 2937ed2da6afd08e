package workloads

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
)

// Template returns the template of a workload's pods with the volumes of its claim templates; nil of a kind that the
// ConfigMap allows, whose spec may have any form.
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
