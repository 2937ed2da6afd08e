package admission

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/json"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/workloads/validation"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Templates reads the pod templates of targets.
type Templates interface {
	// Get returns the metadata of the target of a spread, nil if there is none.
	Get(ctx context.Context, spread *v1beta1.WorkloadSpread) (*metav1.PartialObjectMetadata, error)
	// Template returns the template of a workload's pods, nil if it is not known.
	Template(ctx context.Context, workload *metav1.PartialObjectMetadata) (*podtemplate.Template, error)
	// SelectorKeys returns the labels by which a workload selects its pods.
	SelectorKeys(ctx context.Context, workload *metav1.PartialObjectMetadata) ([]string, error)
}

// withTarget judges the subsets that are new or changed by the target's pod template, if that can be read already: it warns
// of subsets that rule out all nodes, and has the cluster judge the template with each new patch. A new patch must leave
// the fields by which the workload finds its pods. Errors of the template itself are not the patch's fault. A patch that is
// taken unseen shows its faults with the first pod.
func (w *Spreads) withTarget(ctx context.Context, s, old *v1beta1.WorkloadSpread, namespace string) (admission.Findings, error) {
	var found admission.Findings
	changed := func(subset *v1beta1.WorkloadSpreadSubset) bool {
		return (subset.RequiredNodeSelector != nil || len(subset.Patch.Raw) > 0) && (old == nil || !slices.ContainsFunc(old.Spec.Subsets,
			func(o v1beta1.WorkloadSpreadSubset) bool { return equality.Semantic.DeepEqual(&o, subset) }))
	}
	if !slices.ContainsFunc(s.Spec.Subsets, func(subset v1beta1.WorkloadSpreadSubset) bool { return changed(&subset) }) {
		return found, nil
	}
	template, selector := w.targetOf(ctx, &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: s.Spec})
	for i := range s.Spec.Subsets {
		subset := &s.Spec.Subsets[i]
		at := specPath().Child("subsets").Index(i).Child("patch")
		if !changed(subset) {
			continue
		}
		isNew := !isPatchOf(old, subset)
		if isNew {
			if fields := subsets.EstrangedByPatch(subset.Patch.Raw, labelsOf(template), selector); len(fields) > 0 {
				found.Errors = append(found.Errors, field.Invalid(at, string(subset.Patch.Raw), subsets.EstrangedText(fields)))
				continue
			}
		}
		if template == nil {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: template.Pod.ObjectMeta, Spec: template.Pod.Spec}
		if keys := subsets.Conflict(pod, subset); len(keys) > 0 {
			found.Warnings = append(found.Warnings, fmt.Sprintf(
				"subset %q: no node matches both the subset and the pod template of the target: %s", subset.Name, strings.Join(keys, ", ")))
		}
		if !isNew {
			continue
		}
		errs, err := w.validatePatch(ctx, namespace, *template, subset.Patch.Raw, at)
		if err != nil {
			return found, err
		}
		found.Errors = append(found.Errors, errs...)
	}
	return found, nil
}

func labelsOf(template *podtemplate.Template) map[string]string {
	if template == nil {
		return nil
	}
	return template.Pod.Labels
}

// targetOf returns the pod template of the target, and the labels by which it selects its pods; nil if they are not there
// or cannot be read now.
func (w *Spreads) targetOf(ctx context.Context, s *v1beta1.WorkloadSpread) (template *podtemplate.Template, selector []string) {
	workload, err := w.Templates.Get(ctx, s)
	if err == nil && workload != nil {
		if template, err = w.Templates.Template(ctx, workload); err == nil {
			selector, err = w.Templates.SelectorKeys(ctx, workload)
		}
	}
	if err != nil {
		log.FromContext(ctx).Info("Subsets are validated without the target of the WorkloadSpread", "namespace", s.Namespace, "error", err.Error())
	}
	return template, selector
}

func (w *Spreads) validatePatch(ctx context.Context, namespace string, template podtemplate.Template, patch []byte, at *field.Path) (field.ErrorList, error) {
	patched, errs := withPatch(template.Pod, patch, at)
	if len(errs) > 0 {
		return errs, nil
	}
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

// withPatch returns the template as the patch makes it.
func withPatch(template *corev1.PodTemplateSpec, patch []byte, at *field.Path) (*corev1.PodTemplateSpec, field.ErrorList) {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy()}
	if err := subsets.Patch(pod, patch); err != nil {
		return nil, field.ErrorList{field.Invalid(at, string(patch), "cannot be applied to the pods of the target: "+err.Error())}
	}
	return &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, nil
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

// unknownFields returns the fields of a patch that no pod has, each with its path. Directives of the patch are known.
func unknownFields(patch []byte) (unknown []string) {
	if len(patch) == 0 {
		return nil
	}
	found, _ := json.UnmarshalStrict(patch, &corev1.Pod{}) // another check reports whether it can be applied
	for _, err := range found {
		if text := err.Error(); !strings.Contains(text, "$") {
			unknown = append(unknown, text)
		}
	}
	return unknown
}
