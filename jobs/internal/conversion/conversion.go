package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// CronJobs returns the kind AdvancedCronJob in its versions.
func CronJobs() admission.Kind[*v1beta1.AdvancedCronJob] {
	return kind[v1beta1.AdvancedCronJob, v1alpha1.AdvancedCronJob](v1beta1.AdvancedCronJobKind, cronJobToHub, cronJobFromHub)
}

// BroadcastJobs returns the kind BroadcastJob in its versions.
func BroadcastJobs() admission.Kind[*v1beta1.BroadcastJob] {
	return kind[v1beta1.BroadcastJob, v1alpha1.BroadcastJob](v1beta1.BroadcastJobKind, carry, carry)
}

// ImagePullJobs returns the kind ImagePullJob in its versions.
func ImagePullJobs() admission.Kind[*v1beta1.ImagePullJob] {
	return kind[v1beta1.ImagePullJob, v1alpha1.ImagePullJob](v1beta1.ImagePullJobKind, carry, carry)
}

// ImageListPullJobs returns the kind ImageListPullJob in its versions.
func ImageListPullJobs() admission.Kind[*v1beta1.ImageListPullJob] {
	return kind[v1beta1.ImageListPullJob, v1alpha1.ImageListPullJob](v1beta1.ImageListPullJobKind, carry, carry)
}

// kind returns a kind in its versions.
func kind[T, S any, H fastclient.Object[T], P fastclient.Object[S]](name string, toHub, fromHub func(conversion.Object) (conversion.Object, error)) admission.Kind[H] {
	return admission.NewKind(contract.AppsGroup, name,
		admission.Hub[T, H](v1beta1.GroupVersion.Version),
		admission.Spoke[T, S](v1alpha1.GroupVersion.Version, typed[H, P](toHub, fromHub)))
}

// Convert returns the JSON of an object of one of the kinds in the wanted apiVersion. Fields with the same meaning in
// both versions are carried over as they were written, the templates above all.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	var sent metav1.TypeMeta
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	versions := conversion.Versions{
		Hub:     v1beta1.GroupVersion.String(),
		Spoke:   v1alpha1.GroupVersion.String(),
		ToHub:   carry,
		FromHub: carry,
	}
	switch sent.Kind {
	case v1beta1.BroadcastJobKind, v1beta1.ImagePullJobKind, v1beta1.ImageListPullJobKind:
	case v1beta1.AdvancedCronJobKind:
		versions.ToHub, versions.FromHub = cronJobToHub, cronJobFromHub
	default:
		return nil, fmt.Errorf("unsupported kind: %q", sent.Kind)
	}
	return versions.Convert(raw, apiVersion)
}

// carry converts an object of a kind that is the same in both versions.
func carry(src conversion.Object) (conversion.Object, error) { return maps.Clone(src), nil }

// imageListTemplate is the field that v1alpha1 lacks, below spec.template.
const imageListTemplate = "imageListPullJobTemplate"

// cronJobToHub restores the template that v1alpha1 has no field for, unless the user has put another one in its place.
func cronJobToHub(src conversion.Object) (conversion.Object, error) {
	text, kept := conversion.AnnotationIn(src, v1beta1.TemplateAnnotation)
	dst := maps.Clone(src)
	if !kept {
		return dst, nil
	}
	conversion.RemoveAnnotationFrom(dst, v1beta1.TemplateAnnotation)
	var template any
	_ = utiljson.Unmarshal([]byte(text), &template) // an unreadable template counts as absent
	if isReplaced(src) || template == nil {
		return dst, nil
	}
	setTemplate(dst, conversion.Object{imageListTemplate: template})
	return dst, nil
}

func isReplaced(src conversion.Object) bool {
	template := conversion.Member(src, "spec", "template")
	return template["jobTemplate"] != nil || template["broadcastJobTemplate"] != nil
}

// cronJobFromHub keeps the template that v1alpha1 has no field for in an annotation.
func cronJobFromHub(src conversion.Object) (conversion.Object, error) {
	dst := maps.Clone(src)
	if _, stray := conversion.AnnotationIn(src, v1beta1.TemplateAnnotation); stray {
		conversion.RemoveAnnotationFrom(dst, v1beta1.TemplateAnnotation)
	}
	template, ok := conversion.Member(src, "spec", "template")[imageListTemplate]
	if !ok {
		return dst, nil
	}
	setTemplate(dst, nil)
	return dst, conversion.PutAnnotationIn(dst, v1beta1.TemplateAnnotation, template)
}

// setTemplate takes the image list template from other, or removes it if it is not there. It replaces the
// spec by a changed copy.
func setTemplate(object, other conversion.Object) {
	template := conversion.WithMembers(conversion.Member(object, "spec", "template"), other, imageListTemplate)
	object["spec"] = conversion.WithMembers(conversion.Member(object, "spec"), conversion.Object{"template": template}, "template")
}

// typed returns the conversion of the Go types of a kind.
func typed[H, S runtime.Object](toHub, fromHub func(conversion.Object) (conversion.Object, error)) admission.Conversion[H, S] {
	return admission.Conversion[H, S]{
		ToHub:   func(src S, dst H) error { return fill(src, dst, toHub) },
		FromHub: func(src H, dst S) error { return fill(src, dst, fromHub) },
	}
}

// fill fills dst, except for apiVersion and kind, which are left empty.
func fill(src, dst runtime.Object, convert func(conversion.Object) (conversion.Object, error)) error {
	err := conversion.ViaJSON(src, dst, convert)
	dst.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return err
}
