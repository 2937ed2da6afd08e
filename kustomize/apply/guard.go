package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// GuardVersion is the name of a version that is not served, the first one of a guarded CRD.
//
// OpenKruise's manager writes its own conversion into every CRD if it knows the kind in the first version of the list, and
// does not start when it cannot. It does not know this version, and passes the CRD over.
const GuardVersion = "flotilla"

// Guarded reports whether a CRD has the guard.
func Guarded(crd *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) == 0 {
		return false
	}
	first, _ := versions[0].(map[string]any)
	return first["name"] == GuardVersion
}

// Guard returns a copy of a CRD that has the guard.
func Guard(crd *unstructured.Unstructured) *unstructured.Unstructured {
	guarded := crd.DeepCopy()
	if Guarded(crd) {
		return guarded
	}
	versions, _, _ := unstructured.NestedSlice(guarded.Object, "spec", "versions")
	first := map[string]any{
		"name":    GuardVersion,
		"served":  false,
		"storage": false,
		"schema":  map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
	}
	_ = unstructured.SetNestedSlice(guarded.Object, append([]any{first}, versions...), "spec", "versions") // spec is a map
	return guarded
}

// KeepGuard returns the object to apply over a live one: as one that was taken over, if the live one is a CRD that has the
// guard. The live one may be nil.
func KeepGuard(live, object *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil || live.GetKind() != "CustomResourceDefinition" || !Guarded(live) {
		return object
	}
	return TakenOver(live, object)
}

// TakenOver returns the CRD to apply over a live one that is OpenKruise's, nil if there is none: with the guard, and storing
// objects in the version in which they are stored. So OpenKruise's CRD can come back.
func TakenOver(live, crd *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		return Guard(crd)
	}
	return Store(Guard(crd), StorageVersion(live))
}
