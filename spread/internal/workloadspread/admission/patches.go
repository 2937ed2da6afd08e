package admission

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/workloads/validation"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// Templates reads the pod templates of targets.
type Templates interface {
	// Get returns the metadata of the target of a spread, nil if there is none.
	Get(ctx context.Context, spread *v1beta1.WorkloadSpread) (*metav1.PartialObjectMetadata, error)
	// Template returns the template of a workload's pods, nil if it is not known.
	Template(ctx context.Context, workload *metav1.PartialObjectMetadata) (*podtemplate.Template, error)
}

// validatePatches has the cluster judge the target's pod template with each new patch, if the target can be read already.
// What is wrong with the template itself is not the patch's fault. A patch that is taken unseen shows its faults with the
// first pod.
func (w *Spreads) validatePatches(ctx context.Context, s, old *v1beta1.WorkloadSpread, namespace string) (field.ErrorList, error) {
	fresh := slices.DeleteFunc(slices.Clone(s.Spec.Subsets), func(subset v1beta1.WorkloadSpreadSubset) bool { return isPatchOf(old, &subset) })
	if len(fresh) == 0 {
		return nil, nil
	}
	named := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: s.Spec}
	template, err := w.templateOf(ctx, named)
	if err != nil {
		log.FromContext(ctx).Info("The patches of a spread are not validated with its target", "namespace", namespace, "error", err.Error())
	}
	if template == nil {
		return nil, nil
	}
	var errs field.ErrorList
	for i := range s.Spec.Subsets {
		if isPatchOf(old, &s.Spec.Subsets[i]) {
			continue
		}
		found, err := w.validatePatch(ctx, namespace, *template, s.Spec.Subsets[i].Patch.Raw, specPath().Child("subsets").Index(i).Child("patch"))
		if err != nil {
			return nil, err
		}
		errs = append(errs, found...)
	}
	return errs, nil
}

func (w *Spreads) templateOf(ctx context.Context, s *v1beta1.WorkloadSpread) (*podtemplate.Template, error) {
	workload, err := w.Templates.Get(ctx, s)
	if err != nil || workload == nil {
		return nil, err
	}
	return w.Templates.Template(ctx, workload)
}

func (w *Spreads) validatePatch(ctx context.Context, namespace string, template podtemplate.Template, patch []byte, at *field.Path) (field.ErrorList, error) {
	pod := &corev1.Pod{ObjectMeta: template.Pod.ObjectMeta, Spec: *template.Pod.Spec.DeepCopy()}
	if wrong := plan.Patch(pod, patch); wrong != nil {
		return field.ErrorList{field.Invalid(at, string(patch), "it cannot be applied to the pods of the target: "+wrong.Error())}, nil
	}
	patched := &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	errs, err := w.Cluster.Validate(ctx, namespace, patched, at, template.Volumes...)
	if err != nil || len(errs) == 0 {
		return nil, err
	}
	stored, err := w.Cluster.Validate(ctx, namespace, template.Pod, at, template.Volumes...)
	if err != nil {
		return nil, fmt.Errorf("validate the template of the target: %w", err)
	}
	return validation.WithoutStored(errs, stored), nil
}

// isPatchOf reports whether there is nothing to validate: no patch, or the one that the subset had before.
func isPatchOf(old *v1beta1.WorkloadSpread, subset *v1beta1.WorkloadSpreadSubset) bool {
	if len(subset.Patch.Raw) == 0 {
		return true
	}
	return old != nil && slices.ContainsFunc(old.Spec.Subsets, func(o v1beta1.WorkloadSpreadSubset) bool {
		return o.Name == subset.Name && bytes.Equal(o.Patch.Raw, subset.Patch.Raw)
	})
}
