package admission

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/inplace"
)

// PodLookup finds the pods that users name in podsToDelete.
type PodLookup interface {
	// Pod returns the pod, or an error of which users read the text.
	Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
}

// TemplateValidator asks the cluster what it makes of a pod template.
type TemplateValidator interface {
	// Validate returns the template with the cluster's defaults, and what is wrong with it, in paths below
	// path. The error says that the cluster did not answer.
	Validate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, path *field.Path) (*corev1.PodTemplateSpec, field.ErrorList, error)
}

// Reader gathers the facts for one request.
type Reader struct {
	Pods      PodLookup
	Templates TemplateValidator
	// InPlace says what can change on a running pod in this cluster.
	InPlace inplace.Options
}

// Read gathers what the rules need to know about a change from old, nil on create, to set. It asks for
// no more than the change calls for: newly listed pods, and new or changed templates. The error says
// that the cluster did not answer.
func (r Reader) Read(ctx context.Context, set, old *v1beta1.CloneSet, version string) (Facts, error) {
	facts := Facts{Version: version, InPlace: r.InPlace, Pods: r.newlyListed(ctx, set, old)}
	after := withClaimVolumes(set)
	if old == nil {
		var err error
		facts.After, facts.Template, err = r.template(ctx, set.Namespace, after)
		return facts, err
	}
	before := withClaimVolumes(old)
	if equality.Semantic.DeepEqual(before, after) {
		return facts, nil
	}
	return r.readChange(ctx, facts, set.Namespace, before, after)
}

// readChange drops from what is wrong with the new template what is wrong with the stored one as well:
// rules grow stricter with each version of the cluster.
func (r Reader) readChange(ctx context.Context, facts Facts, namespace string, before, after *corev1.PodTemplateSpec) (Facts, error) {
	var known field.ErrorList
	var err error
	if facts.After, facts.Template, err = r.template(ctx, namespace, after); err != nil {
		return facts, err
	}
	if facts.Before, known, err = r.template(ctx, namespace, before); err != nil {
		return facts, err
	}
	facts.Template = slices.DeleteFunc(facts.Template, func(err *field.Error) bool {
		return slices.ContainsFunc(known, func(k *field.Error) bool { return reflect.DeepEqual(err, k) })
	})
	return facts, nil
}

func (r Reader) template(ctx context.Context, namespace string, template *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, field.ErrorList, error) {
	defaulted, errs, err := r.Templates.Validate(ctx, namespace, template, field.NewPath("spec", "template"))
	if err != nil {
		return nil, nil, fmt.Errorf("validate the pod template: %w", err)
	}
	return defaulted, errs, nil
}

// newlyListed looks up names that were not listed before. The controller takes names off once their pods
// are gone, and users change other fields meanwhile.
func (r Reader) newlyListed(ctx context.Context, set, old *v1beta1.CloneSet) map[string]PodFact {
	pods := map[string]PodFact{}
	for _, name := range set.Spec.ScaleStrategy.PodsToDelete {
		if old != nil && slices.Contains(old.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod, err := r.Pods.Pod(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name})
		pods[name] = PodFact{Pod: pod, Err: err}
	}
	return pods
}

// withClaimVolumes is a copy of the pod template with the volumes that its pods will have: each claim
// template makes one of its name, in the place of a volume that is called the same.
func withClaimVolumes(set *v1beta1.CloneSet) *corev1.PodTemplateSpec {
	template := set.Spec.Template.DeepCopy()
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Name
		template.Spec.Volumes = slices.DeleteFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	}
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Name
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
			Name: name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			},
		})
	}
	return template
}
