package conversion

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Lost returns the names of the fields that an update through v1alpha1 would remove unintentionally, because the
// client dropped FieldsAnnotation. Fields with a value that means the same as their absence do not count. It is empty
// if the object accepts the loss.
func Lost(stored, updated *v1beta1.StatefulSet) []string {
	if conversion.AcceptsLoss(updated) {
		return nil
	}
	had, has := fieldsInUse(&stored.Spec), fieldsInUse(&updated.Spec)
	return slices.DeleteFunc(had, func(name string) bool { return slices.Contains(has, name) })
}

// fieldsInUse returns the names of the fields that v1alpha1 lacks, with a value that differs in meaning from their
// absence.
func fieldsInUse(spec *v1beta1.StatefulSetSpec) []string {
	retention := spec.PersistentVolumeClaimRetentionPolicy
	scale := spec.ScaleStrategy
	ordinals := spec.Ordinals
	hooks := spec.Lifecycle
	deletes := func(policy appsv1.PersistentVolumeClaimRetentionPolicyType) bool {
		return policy != "" && policy != appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	}
	var names []string
	for name, is := range map[string]bool{
		"volumeClaimUpdateStrategy":            spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate,
		"reserveOrdinals":                      len(spec.ReserveOrdinals) > 0,
		"lifecycle":                            hooks != nil && (hooks.PreDelete != nil || hooks.InPlaceUpdate != nil || hooks.PreNormal != nil),
		"scaleStrategy":                        scale != nil && scale.MaxUnavailable != nil,
		"persistentVolumeClaimRetentionPolicy": retention != nil && (deletes(retention.WhenDeleted) || deletes(retention.WhenScaled)),
		"ordinals":                             ordinals != nil && ordinals.Start != 0,
	} {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// V1alpha1Path returns the path in v1alpha1 of a field of the hub.
func V1alpha1Path(path string) string {
	for _, part := range parts() {
		for _, name := range fieldsOf(part) {
			rest, ok := strings.CutPrefix(path, part+"."+name)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return field.NewPath("metadata", "annotations").Key(FieldsAnnotation).String() + "." + path
			}
		}
	}
	return path
}
