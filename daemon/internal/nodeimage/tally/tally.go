package tally

import "github.com/flotilla-project/flotilla/daemon/api/v1beta1"

// Key is one round of pulling one tag.
type Key struct {
	Image, Tag string
	Version    int64
}

// Wanted returns the rounds that the spec asks for.
func Wanted(spec *v1beta1.NodeImageSpec) map[Key]bool {
	wanted := map[Key]bool{}
	for image := range spec.Images {
		for _, tag := range spec.Images[image].Tags {
			wanted[Key{image, tag.Tag, tag.Version}] = true
		}
	}
	return wanted
}

// Count sets the numbers in the status of the object. States that belong to no round in the spec do not count.
func Count(object *v1beta1.NodeImage) {
	wanted := Wanted(&object.Spec)
	status := &object.Status
	status.Desired = int32(len(wanted)) //nolint:gosec // some hundred
	status.Waiting = 0
	status.Pulling = 0
	status.Succeeded = 0
	status.Failed = 0
	for image := range status.ImageStatuses {
		for _, tag := range status.ImageStatuses[image].Tags {
			if !wanted[Key{image, tag.Tag, tag.Version}] {
				continue
			}
			switch tag.Phase {
			case v1beta1.ImageWaiting:
				status.Waiting++
			case v1beta1.ImagePulling:
				status.Pulling++
			case v1beta1.ImageSucceeded:
				status.Succeeded++
			case v1beta1.ImageFailed:
				status.Failed++
			}
		}
	}
}
