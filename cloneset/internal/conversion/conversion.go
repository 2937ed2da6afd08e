package conversion

import (
	"strings"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

// ToHub fills an empty hub object from a v1alpha1 one. A type that v1alpha1 does not know becomes the podUpdatePolicy,
// so that validation can name it. An empty type means ReCreate.
func ToHub(src *v1alpha1.CloneSet, dst *v1beta1.CloneSet) error {
	in := src.DeepCopy()
	dst.ObjectMeta = in.ObjectMeta
	var kept record
	conversion.TakeAnnotation(&dst.ObjectMeta, recordAnnotation, &kept)
	dst.Spec = v1beta1.CloneSetSpec{
		Replicas:             in.Spec.Replicas,
		Selector:             in.Spec.Selector,
		Template:             in.Spec.Template,
		VolumeClaimTemplates: in.Spec.VolumeClaimTemplates,
		ScaleStrategy: v1beta1.CloneSetScaleStrategy{
			PodsToDelete:   in.Spec.ScaleStrategy.PodsToDelete,
			MaxUnavailable: in.Spec.ScaleStrategy.MaxUnavailable,
			EnablePVCReuse: !in.Spec.ScaleStrategy.DisablePVCReuse,
		},
		UpdateStrategy:          hubStrategy(in.Spec.UpdateStrategy, kept.RollingUpdate),
		RevisionHistoryLimit:    in.Spec.RevisionHistoryLimit,
		MinReadySeconds:         in.Spec.MinReadySeconds,
		Lifecycle:               in.Spec.Lifecycle,
		ProgressDeadlineSeconds: in.Spec.ProgressDeadlineSeconds,
	}
	readKeys(dst)
	restoreKeys(&dst.ObjectMeta, kept.Keys)
	dst.Status = v1beta1.CloneSetStatus(in.Status)
	return keepIgnored(in.Spec.UpdateStrategy.InPlaceUpdateStrategy, &dst.ObjectMeta)
}

// FromHub fills an empty v1alpha1 object from the hub.
func FromHub(src *v1beta1.CloneSet, dst *v1alpha1.CloneSet) error {
	in := src.DeepCopy()
	dst.ObjectMeta = in.ObjectMeta
	dst.Spec = v1alpha1.CloneSetSpec{
		Replicas:             in.Spec.Replicas,
		Selector:             in.Spec.Selector,
		Template:             in.Spec.Template,
		VolumeClaimTemplates: in.Spec.VolumeClaimTemplates,
		ScaleStrategy: v1alpha1.CloneSetScaleStrategy{
			PodsToDelete:    in.Spec.ScaleStrategy.PodsToDelete,
			MaxUnavailable:  in.Spec.ScaleStrategy.MaxUnavailable,
			DisablePVCReuse: !in.Spec.ScaleStrategy.EnablePVCReuse,
		},
		UpdateStrategy:          spokeStrategy(in.Spec.UpdateStrategy),
		RevisionHistoryLimit:    in.Spec.RevisionHistoryLimit,
		MinReadySeconds:         in.Spec.MinReadySeconds,
		Lifecycle:               in.Spec.Lifecycle,
		ProgressDeadlineSeconds: in.Spec.ProgressDeadlineSeconds,
	}
	dst.Status = v1alpha1.CloneSetStatus(in.Status)
	restoreIgnored(dst)
	delete(dst.Annotations, recordAnnotation)
	kept := record{RollingUpdate: hubOnly(in.Spec.UpdateStrategy), Keys: writeKeys(in, &dst.ObjectMeta)}
	if kept.isEmpty() {
		return nil
	}
	return conversion.PutAnnotation(&dst.ObjectMeta, recordAnnotation, kept)
}

// V1alpha1Path returns the path in v1alpha1 of a field of the hub.
func V1alpha1Path(path string) string {
	path = strings.Replace(path, "spec.updateStrategy.rollingUpdate.podUpdatePolicy", "spec.updateStrategy.type", 1)
	path = strings.Replace(path, "spec.updateStrategy.rollingUpdate", "spec.updateStrategy", 1)
	path = strings.Replace(path, "spec.scaleStrategy.enablePVCReuse", "spec.scaleStrategy.disablePVCReuse", 1)
	for _, key := range keys() {
		path = strings.Replace(path, key.field, key.path, 1)
	}
	return path
}
