package quantity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQoSClass(t *testing.T) {
	spec := func(r ...corev1.ResourceRequirements) *corev1.PodSpec {
		s := &corev1.PodSpec{}
		for i := range r {
			s.Containers = append(s.Containers, corev1.Container{Resources: r[i]})
		}
		return s
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	full := corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1"),
		corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}
	assert.Equal(t, corev1.PodQOSBestEffort, QoSClass(spec(corev1.ResourceRequirements{})))
	assert.Equal(t, corev1.PodQOSGuaranteed, QoSClass(spec(full, full)))
	assert.Equal(t, corev1.PodQOSBurstable, QoSClass(spec(full, corev1.ResourceRequirements{})))
	assert.Equal(t, corev1.PodQOSBurstable, QoSClass(spec(corev1.ResourceRequirements{Limits: cpu})))
	podLevel := spec(corev1.ResourceRequirements{})
	podLevel.Resources = &full
	assert.Equal(t, corev1.PodQOSGuaranteed, QoSClass(podLevel))
}
