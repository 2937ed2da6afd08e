package admission

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Class is a storage class of the cluster, as far as a change of size is concerned, or the reason why it is unknown.
// The zero value is none: a template that names no class in a cluster without a default one.
type Class struct {
	// Name is the name of the class.
	Name string
	// Expandable is true if claims of the class may grow. A class without the field counts as no.
	Expandable bool
	// Err is why there is no class.
	Err error
}

func validateClaimPolicies(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	var errs field.ErrorList
	switch strategy := spec.VolumeClaimUpdateStrategy.Type; strategy {
	case "", v1beta1.OnClaimDelete, v1beta1.OnPodRollingUpdate:
	default:
		path := specPath().Child("volumeClaimUpdateStrategy", "type")
		errs = append(errs, field.Invalid(path, strategy, "must be 'OnPodRollingUpdate' or 'OnDelete'"))
	}
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		path := specPath().Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, validateRetention(policy.WhenDeleted, path.Child("whenDeleted"))...)
		errs = append(errs, validateRetention(policy.WhenScaled, path.Child("whenScaled"))...)
	}
	return errs
}

func validateRetention(is appsv1.PersistentVolumeClaimRetentionPolicyType, path *field.Path) field.ErrorList {
	known := []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	if is == "" || slices.Contains(known, is) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, is, known)}
}

// resizes reports whether claims follow their templates.
func resizes(set *v1beta1.StatefulSet, featureGates FeatureGates) bool {
	return featureGates.AutoResizePVC && set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate
}

// validateClaimChange refuses changes that existing claims could not follow. It compares with the new strategy: with
// OnDelete claims follow nothing, and any change is fine.
func validateClaimChange(set, old *v1beta1.StatefulSet, facts Facts) field.ErrorList {
	if !resizes(set, facts.FeatureGates) {
		return nil
	}
	path := specPath().Child("volumeClaimTemplates")
	templates := set.Spec.VolumeClaimTemplates
	stored := old.Spec.VolumeClaimTemplates
	if len(templates) != len(stored) {
		return field.ErrorList{field.Invalid(path, len(templates),
			"templates cannot be added or deleted when volumeClaimUpdateStrategy is OnPodRollingUpdate")}
	}
	var errs field.ErrorList
	for i := range templates {
		errs = append(errs, validateClaimTemplateChange(&templates[i], &stored[i], facts, path.Key(stored[i].Name))...)
	}
	return errs
}

func validateClaimTemplateChange(template, stored *corev1.PersistentVolumeClaim, facts Facts, path *field.Path) field.ErrorList {
	class := template.Spec.StorageClassName
	was := stored.Spec.StorageClassName
	switch {
	case template.Name != stored.Name:
		return field.ErrorList{field.Forbidden(path.Child("name"), "a template cannot be renamed when volumeClaimUpdateStrategy is OnPodRollingUpdate")}
	case class != nil && was != nil && *class != *was, !slices.Equal(template.Spec.AccessModes, stored.Spec.AccessModes):
		return field.ErrorList{field.Invalid(path, template.Name,
			"storage class and access modes cannot be modified when volumeClaimUpdateStrategy is OnPodRollingUpdate")}
	case !changesSize(template, stored):
		return nil
	}
	switch fact := facts.Classes[template.Name]; {
	case fact.Err != nil:
		return field.ErrorList{field.Invalid(path.Child("spec", "storageClassName"), class, fmt.Sprintf("cannot get the StorageClass: %v", fact.Err))}
	case fact.Name != "" && !fact.Expandable:
		return field.ErrorList{field.Forbidden(path.Child("spec", "resources", "requests", "storage"),
			fmt.Sprintf("storage class %s does not support volume expansion", fact.Name))}
	}
	return nil
}

// changesSize reports whether two templates ask for different sizes.
func changesSize(a, b *corev1.PersistentVolumeClaim) bool {
	request := a.Spec.Resources.Requests[corev1.ResourceStorage]
	limit := a.Spec.Resources.Limits[corev1.ResourceStorage]
	return request.Cmp(b.Spec.Resources.Requests[corev1.ResourceStorage]) != 0 ||
		limit.Cmp(b.Spec.Resources.Limits[corev1.ResourceStorage]) != 0
}

// shrinks reports whether a template asks for less than it did.
func shrinks(template, stored *corev1.PersistentVolumeClaim) bool {
	request := template.Spec.Resources.Requests[corev1.ResourceStorage]
	return request.Cmp(stored.Spec.Resources.Requests[corev1.ResourceStorage]) < 0
}
