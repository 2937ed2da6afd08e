package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StorageVersion returns the version in which objects of a CRD are stored when they are written.
func StorageVersion(crd *unstructured.Unstructured) string {
	for _, version := range versionsOf(crd) {
		if version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// StoredVersions returns the versions in which objects of a live CRD may be stored.
func StoredVersions(crd *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return stored
}

// HasVersion reports whether a CRD has a version.
func HasVersion(crd *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(versionsOf(crd), func(version map[string]any) bool { return version["name"] == name })
}

// Serves reports whether the API server answers requests in a version of a CRD.
func Serves(crd *unstructured.Unstructured, name string) bool {
	return slices.Contains(servedVersions(crd), name)
}

// servedVersions returns the versions of a CRD in which the API server answers requests.
func servedVersions(crd *unstructured.Unstructured) []string {
	var names []string
	for _, version := range versionsOf(crd) {
		if name, ok := version["name"].(string); ok && version["served"] == true {
			names = append(names, name)
		}
	}
	return names
}

// Store returns a copy of a CRD that stores objects in a version, if it has that.
func Store(crd *unstructured.Unstructured, name string) *unstructured.Unstructured {
	next := crd.DeepCopy()
	if !HasVersion(crd, name) {
		return next
	}
	versions := versionsOf(next)
	list := make([]any, 0, len(versions))
	for _, version := range versions {
		version["storage"] = version["name"] == name
		list = append(list, version)
	}
	_ = unstructured.SetNestedSlice(next.Object, list, "spec", "versions") // spec is a map
	return next
}

// Unguard returns a copy of a CRD without the guard.
func Unguard(crd *unstructured.Unstructured) *unstructured.Unstructured {
	next := crd.DeepCopy()
	if !Guarded(crd) {
		return next
	}
	versions, _, _ := unstructured.NestedSlice(next.Object, "spec", "versions")
	_ = unstructured.SetNestedSlice(next.Object, versions[1:], "spec", "versions") // spec is a map
	return next
}

// versionsOf returns copies of the versions of a CRD.
func versionsOf(crd *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var versions []map[string]any
	for _, one := range list {
		if version, ok := one.(map[string]any); ok {
			versions = append(versions, version)
		}
	}
	return versions
}
