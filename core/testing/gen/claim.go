package gen

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimOption changes a claim under construction.
type ClaimOption func(*corev1.PersistentVolumeClaim)

// Claim returns a claim for storage of a size such as "1Gi" that one node can write. Without options it is what users
// write as a claim template.
func Claim(name, size string, options ...ClaimOption) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	for _, option := range options {
		option(&claim)
	}
	return claim
}
