package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// ClaimTemplates validates claim templates as the API server validates the claims that are made of them, so that a
// mistake shows when it is made and not when the first pod is. Each name is a volume's as well. Facts that only the
// cluster knows, such as the existing storage classes, are not checked.
func ClaimTemplates(templates []corev1.PersistentVolumeClaim, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range templates {
		name := templates[i].Name
		errs = append(errs, claimName(name, seen, at.Index(i).Child("metadata", "name"))...)
		errs = append(errs, claimSpec(&templates[i].Spec, at.Index(i).Child("spec"))...)
		seen.Insert(name)
	}
	return errs
}

// RemovedClaimTemplates returns a warning for each claim template of a workload with a partition that was removed
// although the stored pod template mounts its volume: pods of that revision can be created only where a claim exists.
func RemovedClaimTemplates(templates, stored []corev1.PersistentVolumeClaim, template *corev1.PodTemplateSpec, at *field.Path) []string {
	var warnings []string
	mounted := podspec.UndeclaredVolumes(&template.Spec)
	for i := range stored {
		name := stored[i].Name
		removed := !slices.ContainsFunc(templates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name })
		if removed && slices.Contains(mounted, name) {
			warnings = append(warnings, fmt.Sprintf("%s: partition keeps pods at a revision that mounts this volume; "+
				"such a pod is recreated only if its PVC still exists", at.Key(name)))
		}
	}
	return warnings
}

func claimName(name string, seen sets.Set[string], at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case seen.Has(name):
		return field.ErrorList{field.Duplicate(at, name)}
	}
	return invalid(at, name, validation.IsDNS1123Label(name))
}

func claimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	errs := accessModes(spec.AccessModes, at.Child("accessModes"))
	errs = append(errs, storage(spec.Resources, at.Child("resources"))...)
	if spec.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	errs = append(errs, className(spec.StorageClassName, at.Child("storageClassName"))...)
	errs = append(errs, className(spec.VolumeAttributesClassName, at.Child("volumeAttributesClassName"))...)
	if mode := spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem && *mode != corev1.PersistentVolumeBlock {
		supported := []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
		errs = append(errs, field.NotSupported(at.Child("volumeMode"), *mode, supported))
	}
	return errs
}

// className wants a name that an object could have; an empty one means that there is none.
func className(name *string, at *field.Path) field.ErrorList {
	if name == nil || *name == "" {
		return nil
	}
	return invalid(at, *name, validation.IsDNS1123Subdomain(*name))
}

func accessModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(at, "at least 1 access mode is required")}
	}
	supported := []corev1.PersistentVolumeAccessMode{
		corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
	}
	var errs field.ErrorList
	for i, mode := range modes {
		if !slices.Contains(supported, mode) {
			errs = append(errs, field.NotSupported(at.Index(i), mode, supported))
		}
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(at, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func storage(r corev1.VolumeResourceRequirements, at *field.Path) field.ErrorList {
	path := at.Child("requests").Key(string(corev1.ResourceStorage))
	request, ok := r.Requests[corev1.ResourceStorage]
	switch {
	case !ok:
		return field.ErrorList{field.Required(path, "")}
	case request.Sign() <= 0:
		return field.ErrorList{field.Invalid(path, request.String(), "must be greater than zero")}
	}
	return nil
}

func invalid(at *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}
