package conversion

import (
	"maps"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

// Convert returns the JSON of a CloneSet in the wanted apiVersion. Fields with the same meaning in both versions are
// carried over as they were written, the templates above all: "cpu: 0.5" stays, and so does a false that a user wrote
// down. Only labels, annotations and the two strategies go through the types.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	hub := v1beta1.GroupVersion.String()
	spoke := v1alpha1.GroupVersion.String()
	return conversion.Versions{Hub: hub, Spoke: spoke, ToHub: carrying(hub, ToHub), FromHub: carrying(spoke, FromHub)}.Convert(raw, apiVersion)
}

// carrying converts to an apiVersion by the types, and carries over the fields with the same meaning.
func carrying[S, D any](to string, convert func(*S, *D) error) func(conversion.Object) (conversion.Object, error) {
	return func(src conversion.Object) (conversion.Object, error) {
		part := maps.Clone(src)
		part["spec"] = conversion.WithMembers(nil, conversion.Member(src, "spec"), "scaleStrategy", "updateStrategy")
		delete(part, "status")
		typed, err := conversion.ViaTypes(part, convert)
		if err != nil {
			return nil, err
		}
		out := maps.Clone(src)
		out["apiVersion"] = to
		out["metadata"] = conversion.WithMembers(conversion.Member(src, "metadata"), conversion.Member(typed, "metadata"), "labels", "annotations")
		out["spec"] = conversion.WithMembers(conversion.Member(src, "spec"), conversion.Member(typed, "spec"), "scaleStrategy", "updateStrategy")
		carry(src, out)
		return out, nil
	}
}

// carry copies members of the strategies as they were written, because the types leave out zero values. Two members
// are always written out: claim reuse, because its defaults are opposite, and the member that is a label in v1alpha1.
// There, false and absent are one, and an apply of that version would take the other away again and again.
func carry(src, dst conversion.Object) {
	scale := conversion.WithMembers(conversion.Member(dst, "spec", "scaleStrategy"), conversion.Member(src, "spec", "scaleStrategy"), "podsToDelete", "maxUnavailable")
	reuse := "enablePVCReuse"
	if dst["apiVersion"] == v1alpha1.GroupVersion.String() {
		reuse = "disablePVCReuse"
	} else {
		scale["excludePreparingDelete"] = scale["excludePreparingDelete"] == true
	}
	scale[reuse] = scale[reuse] == true
	conversion.Member(dst, "spec")["scaleStrategy"] = scale

	from, to := rollingUpdate(src), rollingUpdate(dst)
	if to == nil {
		return
	}
	maps.Copy(to, conversion.WithMembers(nil, from, "partition", "maxUnavailable", "maxSurge", "paused", "priorityStrategy", "scatterStrategy"))
	if inPlace := conversion.Member(to, "inPlaceUpdateStrategy"); inPlace != nil {
		maps.Copy(inPlace, conversion.WithMembers(nil, conversion.Member(from, "inPlaceUpdateStrategy"), "gracePeriodSeconds"))
	}
}

// rollingUpdate is the object with the numbers of an update in the version of the set, or nil.
func rollingUpdate(set conversion.Object) conversion.Object {
	if set["apiVersion"] == v1alpha1.GroupVersion.String() {
		return conversion.Member(set, "spec", "updateStrategy")
	}
	return conversion.Member(set, "spec", "updateStrategy", "rollingUpdate")
}
