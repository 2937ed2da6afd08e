package diff

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var allGates = Options{EnvFromMetadata: true, Resize: true, CompareClaims: true}

// templateOf has containers of the given names with image <name>:v1.
func templateOf(names ...string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	for _, name := range names {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name, Image: name + ":v1"})
	}
	return t
}

// withInits puts init container setup, which ends, and a native sidecar before the containers of the template.
func withInits(t *corev1.PodTemplateSpec, sidecar string) *corev1.PodTemplateSpec {
	always := corev1.ContainerRestartPolicyAlways
	t.Spec.InitContainers = []corev1.Container{
		{Name: "setup", Image: "setup:v1"},
		{Name: sidecar, Image: sidecar + ":v1", RestartPolicy: &always},
	}
	return t
}

// variant is a changed copy of the template.
func variant(t *corev1.PodTemplateSpec, change func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	change(t)
	return t
}

func revisionOf(name string, t *corev1.PodTemplateSpec) *Revision {
	return &Revision{Name: name, Template: t}
}

func quantities(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}
