package fastclient

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shared returns the canonical copy of a string, which all equal strings share. It is freed after its last use.
func shared[S ~string](s S) S {
	if s == "" {
		return ""
	}
	return unique.Make(s).Value()
}

// shareMeta shares the strings that the metadata of a workload's pods have in common.
func shareMeta(m *metav1.ObjectMeta) {
	m.Namespace = shared(m.Namespace)
	m.GenerateName = shared(m.GenerateName)
	m.Labels = sharedLabels(m.Labels, m.Name)
	m.Annotations = sharedKeys(m.Annotations)
	for i := range m.OwnerReferences {
		r := &m.OwnerReferences[i]
		r.APIVersion = shared(r.APIVersion)
		r.Kind = shared(r.Kind)
		r.Name = shared(r.Name)
		r.UID = shared(r.UID)
	}
}

// sharedLabels leaves out values that end with the object's name: they are unique, such as an ordinal.
func sharedLabels(labels map[string]string, name string) map[string]string {
	if labels == nil {
		return nil
	}
	all := make(map[string]string, len(labels))
	for key, value := range labels {
		if !strings.HasSuffix(name, value) {
			value = shared(value)
		}
		all[shared(key)] = value
	}
	return all
}

func sharedKeys(annotations map[string]string) map[string]string {
	if annotations == nil {
		return nil
	}
	all := make(map[string]string, len(annotations))
	for key, value := range annotations {
		all[shared(key)] = value
	}
	return all
}

func shareGates(gates []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	for i := range gates {
		gates[i].ConditionType = shared(gates[i].ConditionType)
	}
	return gates
}
