package podspec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestUndeclaredVolumes(t *testing.T) {
	mounts := func(names ...string) (all []corev1.VolumeMount) {
		for _, name := range names {
			all = append(all, corev1.VolumeMount{Name: name})
		}
		return all
	}
	spec := &corev1.PodSpec{
		Volumes:        []corev1.Volume{{Name: "config"}},
		InitContainers: []corev1.Container{{VolumeMounts: mounts("data", "config")}},
		Containers: []corev1.Container{
			{VolumeMounts: mounts("data", "log")}, {VolumeDevices: []corev1.VolumeDevice{{Name: "raw"}}, VolumeMounts: mounts("config")},
		},
	}
	assert.Equal(t, []string{"data", "log", "raw"}, UndeclaredVolumes(spec))
	assert.Empty(t, UndeclaredVolumes(&corev1.PodSpec{}))
}
