package conversion

import (
	"fmt"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

// Annotations that conversion keeps its own records in. It alone writes and reads them, clients carry
// them along; one that cannot be read counts as absent, because a conversion that fails would hide the
// object from every list.
const (
	// recordAnnotation stands on the v1alpha1 form: what the hub has and v1alpha1 has no field for.
	recordAnnotation = "apps.kruise.io/v1beta1-record"
	// ignoredAnnotation stands on the hub form: the inPlaceUpdateStrategy of a v1alpha1 object that set
	// imagePreDownload fields in it. v1alpha1 accepts them without effect, v1beta1 would act on them.
	ignoredAnnotation = "apps.kruise.io/v1alpha1-record"
)

// record is the content of recordAnnotation.
type record struct {
	RollingUpdate *unsaidStrategy `json:"rollingUpdate,omitempty"`
	// Keys are the labels and annotations that were written for a field, by name.
	Keys map[string]shownKey `json:"keys,omitempty"`
}

// unsaidStrategy is a rollingUpdate beside OnDelete. The rest of it stands in the flat fields.
type unsaidStrategy struct {
	PodUpdatePolicy v1beta1.PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`
}

// shownKey is a label or annotation that differs between the two forms. Nil means absent.
type shownKey struct {
	Hub   *string `json:"v1beta1"`
	Spoke *string `json:"v1alpha1"`
}

func (r record) isEmpty() bool { return r.RollingUpdate == nil && len(r.Keys) == 0 }

// Lost says what an update through v1alpha1 would take away without meaning to: what the stored object
// has, v1alpha1 cannot say, and the updated object no longer has because its client dropped
// recordAnnotation. It is "" when nothing is lost or the object accepts the loss.
func Lost(stored, updated *v1beta1.CloneSet) string {
	was, now := unsaid(stored.Spec.UpdateStrategy), unsaid(updated.Spec.UpdateStrategy)
	switch {
	case conversion.AcceptsLoss(updated), updated.Spec.UpdateStrategy.Type != v1beta1.OnDelete:
		return ""
	case was == nil || was.PodUpdatePolicy == "":
		return ""
	case now != nil && now.PodUpdatePolicy == was.PodUpdatePolicy:
		return ""
	}
	return conversion.Loss(fmt.Sprintf("podUpdatePolicy %s beside type OnDelete", was.PodUpdatePolicy), recordAnnotation)
}
