package conversion

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// modes are the modes of pull secrets, by "namespace/name" if all images that use the secret have the same mode, and
// otherwise by image and secret, see modeKey.
type modes map[string]v1beta1.SecretMode

// nodeImageToHub fills an empty hub object from a v1alpha1 one.
func nodeImageToHub(src *v1alpha1.NodeImage, dst *v1beta1.NodeImage) error {
	if err := recode(src, dst); err != nil {
		return err
	}
	dst.TypeMeta = metav1.TypeMeta{}
	kept := modes{}
	conversion.TakeAnnotation(&dst.ObjectMeta, v1beta1.SecretModesAnnotation, &kept)
	for image, spec := range dst.Spec.Images {
		for i := range spec.PullSecrets {
			secret := &spec.PullSecrets[i]
			if mode, ok := kept[modeKey(image, *secret)]; ok {
				secret.Mode = mode
			} else {
				secret.Mode = kept[secretKey(*secret)]
			}
		}
	}
	return nil
}

// nodeImageFromHub fills an empty v1alpha1 object from the hub.
func nodeImageFromHub(src *v1beta1.NodeImage, dst *v1alpha1.NodeImage) error {
	if err := recode(src, dst); err != nil {
		return err
	}
	dst.TypeMeta = metav1.TypeMeta{}
	delete(dst.Annotations, v1beta1.SecretModesAnnotation)
	kept := modesOf(src)
	if len(kept) == 0 {
		return nil
	}
	return conversion.PutAnnotation(&dst.ObjectMeta, v1beta1.SecretModesAnnotation, kept)
}

// modesOf returns the secrets that have a mode. A secret with one mode for all images is listed once.
func modesOf(object *v1beta1.NodeImage) modes {
	agreed, disputed := modes{}, map[string]bool{}
	for _, spec := range object.Spec.Images {
		for _, secret := range spec.PullSecrets {
			key := secretKey(secret)
			if mode, seen := agreed[key]; seen && mode != secret.Mode {
				disputed[key] = true
			}
			agreed[key] = secret.Mode
		}
	}
	maps.DeleteFunc(agreed, func(key string, mode v1beta1.SecretMode) bool { return mode == "" || disputed[key] })
	if len(disputed) == 0 {
		return agreed
	}
	for image, spec := range object.Spec.Images {
		for _, secret := range spec.PullSecrets {
			if disputed[secretKey(secret)] && secret.Mode != "" {
				agreed[modeKey(image, secret)] = secret.Mode
			}
		}
	}
	return agreed
}

func secretKey(secret v1beta1.SecretReference) string { return secret.Namespace + "/" + secret.Name }

// modeKey returns the key of a secret of one image. References of images contain no blanks.
func modeKey(image string, secret v1beta1.SecretReference) string {
	return image + " " + secretKey(secret)
}

// LostModes returns which modes of secrets an update through v1alpha1 would remove unintentionally, because the client
// dropped the annotation that has them. It is "" if nothing is lost or the object accepts the loss.
func LostModes(stored, updated *v1beta1.NodeImage) string {
	if conversion.AcceptsLoss(updated) {
		return ""
	}
	for _, image := range slices.Sorted(maps.Keys(updated.Spec.Images)) {
		had := map[string]v1beta1.SecretMode{}
		for _, secret := range stored.Spec.Images[image].PullSecrets {
			had[secretKey(secret)] = secret.Mode
		}
		for _, secret := range updated.Spec.Images[image].PullSecrets {
			if mode := had[secretKey(secret)]; mode != "" && secret.Mode == "" {
				return conversion.Loss(
					fmt.Sprintf("mode %s of secret %s of image %s", mode, secretKey(secret), image), v1beta1.SecretModesAnnotation)
			}
		}
	}
	return ""
}
