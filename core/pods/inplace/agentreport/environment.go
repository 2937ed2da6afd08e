package agentreport

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
)

// The fields of a pod that a variable can read by key.
const (
	FieldLabels      = "labels"
	FieldAnnotations = "annotations"
)

// EnvHash is the hash of those variables of the container that read a label or an annotation, with
// the values that lookup gives: "labels" or "annotations" and the key, or for the node agent the
// variable's name in the real environment.
func EnvHash(c *corev1.Container, value func(env *corev1.EnvVar, field, key string) string) uint64 {
	var list []corev1.EnvVar
	for i := range c.Env {
		if field, key, ok := Reference(&c.Env[i]); ok && !Hidden(c, i) {
			list = append(list, corev1.EnvVar{Name: c.Env[i].Name, Value: value(&c.Env[i], field, key)})
		}
	}
	slices.SortFunc(list, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return TextHash(annotation.Encode(list))
}

// ExpectedEnvHash returns the hash that the container has once it has read the pod's present metadata.
func ExpectedEnvHash(c *corev1.Container, pod *corev1.Pod) uint64 {
	return EnvHash(c, func(_ *corev1.EnvVar, field, key string) string {
		if field == FieldAnnotations {
			return pod.Annotations[key]
		}
		return pod.Labels[key]
	})
}

// Reference is the label or annotation that the variable reads, if it reads one.
func Reference(e *corev1.EnvVar) (field, key string, ok bool) {
	if e.Name == contract.SidecarSetVersionEnv || e.Name == contract.SidecarSetVersionAltEnv {
		return "", "", false
	}
	if e.Value != "" || e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
		return "", "", false
	}
	for _, field := range [...]string{FieldLabels, FieldAnnotations} {
		if rest, ok := strings.CutPrefix(e.ValueFrom.FieldRef.FieldPath, "metadata."+field+"['"); ok {
			if key, ok := strings.CutSuffix(rest, "']"); ok {
				return field, key, true
			}
		}
	}
	return "", "", false
}

// Reads reports whether the container has a variable that reads the key, or any key when it is empty.
func Reads(c *corev1.Container, field, key string) bool {
	for i := range c.Env {
		f, k, ok := Reference(&c.Env[i])
		if ok && (key == "" || f == field && k == key) && !Hidden(c, i) {
			return true
		}
	}
	return false
}

// Hidden reports whether a later variable of the same name hides the one at the index: the process has the value of the
// last one.
func Hidden(c *corev1.Container, i int) bool {
	return slices.ContainsFunc(c.Env[i+1:], func(later corev1.EnvVar) bool { return later.Name == c.Env[i].Name })
}

// ReadsMetadata reports whether the container has a variable that reads a label or an annotation.
func ReadsMetadata(c *corev1.Container) bool { return Reads(c, "", "") }
