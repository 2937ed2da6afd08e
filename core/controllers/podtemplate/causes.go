package podtemplate

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// templateField is the field of a PodTemplate that has the template.
const templateField = "template"

// causesOf returns the field errors in the server's answer; never nil.
func causesOf(status metav1.Status) []metav1.StatusCause {
	if status.Details != nil && len(status.Details.Causes) > 0 {
		return status.Details.Causes
	}
	return []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: templateField, Message: status.Message}}
}

// errorsAt returns the causes as field errors below the path, with the server's text.
func errorsAt(at *field.Path, causes []metav1.StatusCause) field.ErrorList {
	var list field.ErrorList
	for _, cause := range causes {
		kind := errorType(cause.Type)
		list = append(list, &field.Error{
			Type: kind,
			// The rejected value is known only as part of the server's text, so it goes into the detail.
			BadValue: field.OmitValueType{},
			Field:    at.String() + strings.TrimPrefix(cause.Field, templateField),
			Detail:   strings.TrimPrefix(strings.TrimPrefix(cause.Message, kind.String()), ": "),
		})
	}
	return list
}

// errorType returns the cause's type if package field knows it. The text of an unknown type would hide the message.
func errorType(cause metav1.CauseType) field.ErrorType {
	switch kind := field.ErrorType(cause); kind {
	case field.ErrorTypeNotFound, field.ErrorTypeRequired, field.ErrorTypeDuplicate, field.ErrorTypeNotSupported,
		field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return kind
	default:
		return field.ErrorTypeInvalid
	}
}
