package admission

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Validate validates a NodeImage. Old is the stored one, nil on create. What is stored already does not prevent other
// changes: tags are validated when they are new or change, and the number of images when it grows.
func Validate(object, old *v1beta1.NodeImage) field.ErrorList {
	if old == nil {
		old = &v1beta1.NodeImage{}
	}
	at := field.NewPath("spec", "images")
	var errs field.ErrorList
	images, stored := object.Spec.Images, old.Spec.Images
	if len(images) > v1beta1.MaxImagesPerNode && len(images) > len(stored) {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeTooMany, Field: at.String(), BadValue: len(images),
			Detail: fmt.Sprintf("at most %d images per node", v1beta1.MaxImagesPerNode),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		errs = append(errs, validateImage(name, images[name], stored[name], at.Key(name))...)
	}
	return errs
}

func validateImage(name string, image, stored v1beta1.ImageSpec, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "an image needs a name")}
	}
	known := make(map[string]*v1beta1.ImageTagSpec, len(stored.Tags))
	for i := range stored.Tags {
		known[stored.Tags[i].Tag] = &stored.Tags[i]
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(image.Tags))
	for i := range image.Tags {
		tag, tagAt := &image.Tags[i], at.Child("tags").Index(i)
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
		errs = append(errs, field.Required(at.Child("createdAt"), "a tag without it is dropped"))
	}
	if tag.Version < 0 {
		errs = append(errs, field.Invalid(at.Child("version"), tag.Version, "must be 0 or more"))
	}
	ttl := at.Child("pullPolicy", "ttlSecondsAfterFinished")
	if tag.PullPolicy == nil {
		errs = append(errs, field.Required(at.Child("pullPolicy"), "say when the entry is dropped"))
	} else if tag.PullPolicy.TTLSecondsAfterFinished == nil {
		errs = append(errs, field.Required(ttl, "an entry without it would stay for ever"))
	}
	return errs
}
