package newpod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// ClaimOptions are the fields of a claim in addition to its template.
type ClaimOptions struct {
	// Name and Namespace are the claim's; the template's are ignored.
	Name, Namespace string
	// Labels override the labels of the template, and later ones override earlier ones.
	Labels []map[string]string
	// Owners are the owners of the claim, which is deleted with them; nil for none.
	Owners []metav1.OwnerReference
}

// ClaimFromTemplate is a new claim of the template.
func ClaimFromTemplate(template *corev1.PersistentVolumeClaim, o ClaimOptions) *corev1.PersistentVolumeClaim {
	t := template.DeepCopy()
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            o.Name,
			Namespace:       o.Namespace,
			Labels:          merged(append([]map[string]string{t.Labels}, o.Labels...)...),
			Annotations:     t.Annotations,
			OwnerReferences: o.Owners,
		},
		Spec: t.Spec,
	}
}

// Mount names a claim and the volume by which containers mount it.
type Mount struct{ Volume, Claim string }

// MountClaims puts one volume for each claim before the pod's other volumes. A volume of the same name
// gives way.
func MountClaims(pod *corev1.Pod, mounts ...Mount) {
	if len(mounts) == 0 {
		return
	}
	named := map[string]bool{}
	all := make([]corev1.Volume, 0, len(mounts)+len(pod.Spec.Volumes))
	for _, m := range mounts {
		named[m.Volume] = true
		all = append(all, corev1.Volume{Name: m.Volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Claim},
		}})
	}
	for i := range pod.Spec.Volumes {
		if !named[pod.Spec.Volumes[i].Name] {
			all = append(all, pod.Spec.Volumes[i])
		}
	}
	pod.Spec.Volumes = all
}

// FormerVolumes returns the volumes of a template's pods from claims of removed claim templates: its containers mount
// them, and nothing declares them any more. A volume that the present template leaves undeclared, too, is not among
// them: a webhook adds that one.
func FormerVolumes(of, present *corev1.PodSpec, claims []corev1.PersistentVolumeClaim) []string {
	volumes := slices.DeleteFunc(podspec.UndeclaredVolumes(of), func(name string) bool {
		return slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name })
	})
	if len(volumes) == 0 {
		return nil
	}
	injected := podspec.UndeclaredVolumes(present)
	return slices.DeleteFunc(volumes, func(name string) bool { return slices.Contains(injected, name) })
}
