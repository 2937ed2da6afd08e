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
	return []metav1.StatusCause{{
		Type:    metav1.CauseTypeFieldValueInvalid,
		Field:   templateField,
		Message: status.Message,
	}}
}

// ErrorsBelow returns the field errors in the server's answer about an object that a part of another one, at the path,
// was made from, with the server's text.
func ErrorsBelow(at *field.Path, status metav1.Status) field.ErrorList {
	var list field.ErrorList
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return field.ErrorList{&field.Error{
			Type:     field.ErrorTypeInvalid,
			BadValue: field.OmitValueType{},
			Field:    at.String(),
			Detail:   status.Message,
		}}
	}
	for _, cause := range status.Details.Causes {
		list = append(list, errorOf(cause, at.String()+"."+cause.Field))
	}
	return list
}

// errorsAt returns the causes as field errors below the path, with the server's text.
func errorsAt(at *field.Path, causes []metav1.StatusCause) field.ErrorList {
	var list field.ErrorList
	for _, cause := range causes {
		list = append(list, errorOf(cause, at.String()+strings.TrimPrefix(cause.Field, templateField)))
	}
	return list
}

func errorOf(cause metav1.StatusCause, path string) *field.Error {
	kind := errorType(cause.Type)
	return &field.Error{
		Type: kind,
		// The rejected value is known only as part of the server's text, so it goes into the detail.
		BadValue: field.OmitValueType{},
		Field:    path,
		Detail:   strings.TrimPrefix(strings.TrimPrefix(cause.Message, kind.String()), ": "),
	}
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
