package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Validate validates a NodeImage. Old is the stored one, nil on create. Stored tags and sizes do not prevent other
// changes: tags are validated when they are new or change, and limits when a number or size grows.
func Validate(object, old *v1beta1.NodeImage) field.ErrorList {
	if old == nil {
		old = &v1beta1.NodeImage{}
	}
	at := field.NewPath("spec", "images")
	var errs field.ErrorList
	images, stored := object.Spec.Images, old.Spec.Images
	errs = append(errs, tooMany(at, len(images), len(stored), v1beta1.MaxImagesPerNode, "images per node")...)
	for _, name := range slices.Sorted(maps.Keys(images)) {
		errs = append(errs, validateImage(name, images[name], stored[name], at.Key(name))...)
	}
	if size := bytesOf(object); size > v1beta1.MaxNodeImageBytes && size > bytesOf(old) {
		errs = append(errs, tooLong(field.NewPath("spec"), size, v1beta1.MaxNodeImageBytes, "as JSON"))
	}
	return errs
}

// tooMany returns that there are more than the most, unless that was so before.
func tooMany(at *field.Path, number, before, most int, what string) field.ErrorList {
	if number <= most || number <= before {
		return nil
	}
	return field.ErrorList{{
		Type:     field.ErrorTypeTooMany,
		Field:    at.String(),
		BadValue: number,
		Detail:   fmt.Sprintf("at most %d %s", most, what),
	}}
}

func tooLong(at *field.Path, size, most int, what string) *field.Error {
	return &field.Error{
		Type:     field.ErrorTypeTooLong,
		Field:    at.String(),
		Detail:   fmt.Sprintf("%d bytes %s, at most %d", size, what, most),
		BadValue: size,
	}
}

func bytesOf(object *v1beta1.NodeImage) int {
	text, _ := json.Marshal(&object.Spec) // maps, texts and numbers always marshal
	return len(text)
}

func sandboxBytes(image *v1beta1.ImageSpec) int {
	if image.SandboxConfig == nil {
		return 0
	}
	return v1beta1.SandboxBytes(image.SandboxConfig.Labels, image.SandboxConfig.Annotations)
}

// validateLimits validates the sizes of an image's parts.
func validateLimits(image, stored *v1beta1.ImageSpec, at *field.Path) field.ErrorList {
	errs := tooMany(at.Child("tags"), len(image.Tags), len(stored.Tags), v1beta1.MaxTagsPerImage, "tags of an image")
	errs = append(errs, tooMany(at.Child("pullSecrets"), len(image.PullSecrets), len(stored.PullSecrets), v1beta1.MaxSecretsPerImage, "pull secrets of an image")...)
	if size := sandboxBytes(image); size > v1beta1.MaxSandboxBytes && size > sandboxBytes(stored) {
		errs = append(errs, tooLong(at.Child("sandboxConfig"), size, v1beta1.MaxSandboxBytes, "of labels and annotations"))
	}
	return errs
}

func validateImage(name string, image, stored v1beta1.ImageSpec, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "an image needs a name")}
	}
	errs := validateLimits(&image, &stored, at)
	if short, err := imageref.Parse(name + ":tag"); err == nil && short.Name != name && len(stored.Tags) == 0 {
		return append(errs, field.Invalid(at, name, fmt.Sprintf("write it as %q, as container runtimes list it", short.Name)))
	}
	known := make(map[string]*v1beta1.ImageTagSpec, len(stored.Tags))
	for i := range stored.Tags {
		known[stored.Tags[i].Tag] = &stored.Tags[i]
	}
	seen := make(map[string]bool, len(image.Tags))
	for i := range image.Tags {
		tag := &image.Tags[i]
		tagAt := at.Child("tags").Index(i)
		if seen[tag.Tag] {
			errs = append(errs, field.Duplicate(tagAt.Child("tag"), tag.Tag))
			continue
		}
		seen[tag.Tag] = true
		if !equality.Semantic.DeepEqual(known[tag.Tag], tag) {
			errs = append(errs, validateTag(name, tag, tagAt)...)
		}
	}
	return errs
}

func validateTag(name string, tag *v1beta1.ImageTagSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if tag.Tag == "" {
		errs = append(errs, field.Required(at.Child("tag"), "name a tag or a digest"))
	} else if _, err := (imageref.Ref{Name: name, Tag: tag.Tag}).CRI(); err != nil {
		errs = append(errs, field.Invalid(at.Child("tag"), tag.Tag, err.Error()))
	}
	if tag.CreatedAt == nil {
		errs = append(errs, field.Required(at.Child("createdAt"), "a tag without it is removed"))
	}
	if tag.Version < 0 {
		errs = append(errs, field.Invalid(at.Child("version"), tag.Version, "must be 0 or more"))
	}
	ttl := at.Child("pullPolicy", "ttlSecondsAfterFinished")
	if tag.PullPolicy == nil {
		errs = append(errs, field.Required(at.Child("pullPolicy"), "pullPolicy.ttlSecondsAfterFinished is required"))
	} else if tag.PullPolicy.TTLSecondsAfterFinished == nil {
		errs = append(errs, field.Required(ttl, "an entry without it stays forever"))
	}
	return errs
}
