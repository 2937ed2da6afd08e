package conversion

import (
	"fmt"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

// Annotations in which conversion keeps the values that a version has no field for. Only conversion writes and reads
// them; clients carry them along. One that cannot be decoded counts as absent: a conversion must not fail for that,
// because the object would be missing in every list.
const (
	// recordAnnotation is set on v1alpha1 objects. It has the values that v1alpha1 has no field for.
	recordAnnotation = "apps.kruise.io/v1beta1-record"
	// ignoredAnnotation is set on hub objects. It has the inPlaceUpdateStrategy of a v1alpha1 object with
	// imagePreDownload fields, which v1alpha1 accepts and ignores. In the hub they would have an effect.
	ignoredAnnotation = "apps.kruise.io/v1alpha1-record"
)

// record is the content of recordAnnotation.
type record struct {
	RollingUpdate *hubOnlyStrategy `json:"rollingUpdate,omitempty"`
	// Keys are the labels and annotations that conversion wrote for a field, by name.
	Keys map[string]keyValues `json:"keys,omitempty"`
}

// hubOnlyStrategy holds the fields of a rollingUpdate with type OnDelete that v1alpha1 cannot express.
type hubOnlyStrategy struct {
	PodUpdatePolicy v1beta1.PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`
}

// keyValues are the values of a label or annotation that differs between the versions. Nil means absent.
type keyValues struct {
	Hub   *string `json:"v1beta1"`
	Spoke *string `json:"v1alpha1"`
}

func (r record) isEmpty() bool { return r.RollingUpdate == nil && len(r.Keys) == 0 }

// Lost returns the fields that an update through v1alpha1 would remove unintentionally, because v1alpha1 cannot
// express them and the client dropped recordAnnotation. It is "" if nothing is lost or the object accepts the loss.
func Lost(stored, updated *v1beta1.CloneSet) string {
	was := hubOnly(stored.Spec.UpdateStrategy)
	now := hubOnly(updated.Spec.UpdateStrategy)
	switch {
	case conversion.AcceptsLoss(updated), updated.Spec.UpdateStrategy.Type != v1beta1.OnDelete:
		return ""
	case was == nil || was.PodUpdatePolicy == "":
		return ""
	case now != nil && now.PodUpdatePolicy == was.PodUpdatePolicy:
		return ""
	}
	return conversion.Loss(fmt.Sprintf("podUpdatePolicy %s with type OnDelete", was.PodUpdatePolicy), recordAnnotation)
}
