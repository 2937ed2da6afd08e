package admission

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/featuregates"
	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
)

// Warnings warn the user about fields that are accepted and do not do the thing that they seem to do. Old is the
// stored object, nil on create.
func Warnings(set, old *v1beta1.StatefulSet, featureGates FeatureGates) []string {
	warnings := ineffective(&set.Spec, featureGates)
	if asksPreDownload(set) && !featureGates.PreDownload {
		warnings = append(warnings, without("image pre-download", features.PreDownloadImageForInPlaceUpdate))
	}
	reserved := specPath().Child("reserveOrdinals")
	warnings = append(warnings, ordinals.Overlaps(set.Spec.ReserveOrdinals, reserved)...)
	warnings = append(warnings, longNames(set)...)
	if old != nil && resizes(set, featureGates) {
		warnings = append(warnings, shrinking(set, old)...)
	}
	if old != nil && keepsPods(set) {
		templates := specPath().Child("volumeClaimTemplates")
		warnings = append(warnings, validation.RemovedClaimTemplates(set.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates, &old.Spec.Template, templates)...)
	}
	return warnings
}

// keepsPods reports whether a partition keeps pods at the current revision.
func keepsPods(set *v1beta1.StatefulSet) bool {
	strategy := set.Spec.UpdateStrategy
	return strategy.Type != appsv1.OnDeleteStatefulSetStrategyType && strategy.RollingUpdate != nil && ptr.Deref(strategy.RollingUpdate.Partition, 0) > 0
}

// ineffective names the fields with a feature gate that is off.
func ineffective(spec *v1beta1.StatefulSetSpec, featureGates FeatureGates) []string {
	var warnings []string
	if spec.Ordinals != nil && spec.Ordinals.Start != 0 && !featureGates.StartOrdinal {
		warnings = append(warnings, without("spec.ordinals", featuregates.StatefulSetStartOrdinal))
	}
	deletes := appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	policy := spec.PersistentVolumeClaimRetentionPolicy
	if policy != nil && (policy.WhenDeleted == deletes || policy.WhenScaled == deletes) && !featureGates.AutoDeletePVC {
		warnings = append(warnings, without("spec.persistentVolumeClaimRetentionPolicy", featuregates.StatefulSetAutoDeletePVC))
	}
	if spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate && !featureGates.AutoResizePVC {
		warnings = append(warnings, without("spec.volumeClaimUpdateStrategy", featuregates.StatefulSetAutoResizePVCGate))
	}
	return warnings
}

func without(what string, featureGate features.Name) string {
	return fmt.Sprintf("%s has no effect: feature gate %s of the StatefulSet operator is off", what, featureGate)
}

// asksPreDownload reports whether the user set any setting of image pre-download, in a field or an annotation.
func asksPreDownload(set *v1beta1.StatefulSet) bool {
	for _, key := range []string{
		contract.ImagePreDownloadParallelismAnnotation, contract.ImagePreDownloadTimeoutSecondsAnnotation,
		contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation,
	} {
		if _, ok := set.Annotations[key]; ok {
			return true
		}
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.InPlaceUpdateStrategy == nil {
		return false
	}
	in := rolling.InPlaceUpdateStrategy
	return in.ImagePreDownloadParallelism != nil || in.ImagePreDownloadTimeoutSeconds != nil || in.ImagePreDownloadMinUpdatedReadyPods != nil
}

// longNames: the name of a pod is also its host name and the value of a label.
func longNames(set *v1beta1.StatefulSet) []string {
	if len(set.Name)+len("-0") <= utilvalidation.DNS1123LabelMaxLength {
		return nil
	}
	return []string{fmt.Sprintf("pods such as %s-0 cannot be created: their names are longer than %d characters", set.Name, utilvalidation.DNS1123LabelMaxLength)}
}

// shrinking names the claim templates that ask for less than before.
func shrinking(set, old *v1beta1.StatefulSet) []string {
	var warnings []string
	for i := range min(len(set.Spec.VolumeClaimTemplates), len(old.Spec.VolumeClaimTemplates)) {
		template := &set.Spec.VolumeClaimTemplates[i]
		if shrinks(template, &old.Spec.VolumeClaimTemplates[i]) {
			path := specPath().Child("volumeClaimTemplates").Key(template.Name)
			warnings = append(warnings, fmt.Sprintf("%s: existing PVCs keep their size; only new PVCs are smaller", path))
		}
	}
	return warnings
}
