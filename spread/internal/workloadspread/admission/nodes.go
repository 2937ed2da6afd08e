package admission

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// validateNodes has the scheduler's own parser judge the terms of a subset.
func validateNodes(subset *v1beta1.WorkloadSpreadSubset, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if required := subset.RequiredNodeSelector; required != nil {
		_, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*required}}, field.WithPath(at))
		errs = append(errs, fieldErrors(err, at.Child("requiredNodeSelector"), ".nodeSelectorTerms[0]", ".requiredNodeSelector")...)
		errs = append(errs, validateMatchFields(required, at.Child("requiredNodeSelector"))...)
	}
	for i := range subset.PreferredNodeSelector {
		term := &subset.PreferredNodeSelector[i]
		path := at.Child("preferredNodeSelector").Index(i)
		if term.Weight < 1 || term.Weight > 100 {
			errs = append(errs, field.Invalid(path.Child("weight"), term.Weight, "must be from 1 to 100"))
		}
		_, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term.Preference}}, field.WithPath(path))
		errs = append(errs, fieldErrors(err, path, ".nodeSelectorTerms[0]", ".preference")...)
		errs = append(errs, validateMatchFields(&term.Preference, path.Child("preference"))...)
	}
	return errs
}

// fieldErrors returns the errors with a part of their paths replaced; those without a path get one.
func fieldErrors(err error, at *field.Path, old, replacement string) field.ErrorList {
	if err == nil {
		return nil
	}
	all := []error{err}
	if list := utilerrors.Aggregate(nil); errors.As(err, &list) {
		all = list.Errors()
	}
	var errs field.ErrorList
	for _, e := range all {
		var known *field.Error
		if !errors.As(e, &known) {
			errs = append(errs, field.Invalid(at, "", e.Error()))
			continue
		}
		renamed := *known
		renamed.Field = strings.Replace(known.Field, old, replacement, 1)
		errs = append(errs, &renamed)
	}
	return errs
}

// validateMatchFields checks the fields by the rules of the API server for pods. The parser checks operators and the number of
// values alone.
func validateMatchFields(term *corev1.NodeSelectorTerm, at *field.Path) (errs field.ErrorList) {
	for i, r := range term.MatchFields {
		path := at.Child("matchFields").Index(i)
		if r.Key != metav1.ObjectNameField {
			errs = append(errs, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key: must be "+metav1.ObjectNameField))
			continue
		}
		for j, value := range r.Values {
			for _, why := range apivalidation.NameIsDNSSubdomain(value, false) {
				errs = append(errs, field.Invalid(path.Child("values").Index(j), value, why))
			}
		}
	}
	return errs
}
