package validation

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WithoutStored leaves out errors that the stored object has in the same way: they do not block other changes. The list
// errs is not usable afterwards.
func WithoutStored(errs, stored field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(stored, func(known *field.Error) bool { return reflect.DeepEqual(err, known) })
	})
}

// Duplicates returns the names that are in the list more than once, each once.
func Duplicates(names []string) []string {
	var twice []string
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		seen[name] = true
	}
	return twice
}
