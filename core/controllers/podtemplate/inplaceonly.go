package podtemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// InPlaceOnly returns an error for a change of a template that running pods could never follow, for policy InPlaceOnly.
// old and now are the templates as written. The function compares the templates of the change, which have the cluster's
// defaults, if they are known. It reads an absent imagePullPolicy as the options define. The error has the path at.
func InPlaceOnly(change Change, old, now *corev1.PodTemplateSpec, at *field.Path, o inplace.Options) field.ErrorList {
	before := withPullPolicy(change.Before, old, o.DefaultPullPolicy)
	after := withPullPolicy(change.After, now, o.DefaultPullPolicy)
	_, err := inplace.Diff(&inplace.Revision{Template: before}, &inplace.Revision{Template: after}, o)
	reason, ok := errors.AsType[*inplace.NotPossibleError](err)
	if !ok {
		return nil
	}
	found := firstChangeBesidesImages(&before.Spec, &after.Spec)
	if found == "" {
		found = "replace " + reason.Path
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf(
		"only allowed to update images in spec for InPlaceOnly, but found %s (%s)", found, reason.Message))}
}

// withPullPolicy returns a copy of the template with the imagePullPolicy that its pods get where it is absent. It is a
// copy of the template as written if the cluster's defaults are unknown.
func withPullPolicy(defaulted, written *corev1.PodTemplateSpec, policy podspec.DefaultPullPolicy) *corev1.PodTemplateSpec {
	template := written.DeepCopy()
	if defaulted != nil {
		template = defaulted.DeepCopy()
	}
	for i := range written.Spec.Containers {
		if policy == podspec.PullAlways && written.Spec.Containers[i].ImagePullPolicy == "" && i < len(template.Spec.Containers) {
			template.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range written.Spec.InitContainers {
		if written.Spec.InitContainers[i].ImagePullPolicy == "" && i < len(template.Spec.InitContainers) {
			template.Spec.InitContainers[i].ImagePullPolicy = "" // a default that follows a new tag is no change
		}
	}
	return template
}

// firstChangeBesidesImages returns the first difference of two pod specs that is not an image, as an operation and a
// JSON pointer, or "".
func firstChangeBesidesImages(before, after *corev1.PodSpec) string {
	var images []string // that may change
	for i := range after.Containers {
		images = append(images, fmt.Sprintf("/containers/%d/image", i))
	}
	for i := range after.InitContainers {
		if podspec.IsSidecar(&after.InitContainers[i]) {
			images = append(images, fmt.Sprintf("/initContainers/%d/image", i))
		}
	}
	a, errA := json.Marshal(before)
	b, errB := json.Marshal(after)
	operations, err := jsonpatch.CreatePatch(a, b)
	if errors.Join(errA, errB, err) != nil {
		return ""
	}
	for _, o := range operations {
		if o.Operation != "replace" || !slices.Contains(images, o.Path) {
			return o.Operation + " " + o.Path
		}
	}
	return ""
}
