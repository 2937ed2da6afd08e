package inplace

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/dump"

	"github.com/flotilla-project/flotilla/core/contract"
)

// EnvHash is the hash of those variables of the container that read a label or an annotation, with
// the values that lookup gives: "labels" or "annotations" and the key, or for the node agent the
// variable's name in the real environment.
func EnvHash(c *corev1.Container, value func(env *corev1.EnvVar, field, key string) string) uint64 {
	var list []corev1.EnvVar
	for i := range c.Env {
		if field, key, ok := metadataReference(&c.Env[i]); ok {
			list = append(list, corev1.EnvVar{Name: c.Env[i].Name, Value: value(&c.Env[i], field, key)})
		}
	}
	slices.SortFunc(list, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return hash32([]byte(encode(list)))
}

// expectedEnvHash is the hash that the container has once it has read the pod's present metadata.
func expectedEnvHash(c *corev1.Container, pod *corev1.Pod) uint64 {
	return EnvHash(c, func(_ *corev1.EnvVar, field, key string) string {
		if field == fieldLabels {
			return pod.Labels[key]
		}
		return pod.Annotations[key]
	})
}

// plainHashes are the hashes by which kubelets know a container of the spec: those from 1.31 on hash
// name and image only, older ones all of it.
func plainHashes(c *corev1.Container) [2]uint64 {
	return [2]uint64{
		hash32([]byte(encode(map[string]string{"image": c.Image, "name": c.Name}))),
		hash32([]byte(encode(c))),
	}
}

// hash32 is the function by which Kubernetes' controllers hash templates.
func hash32(v any) uint64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", dump.ForHash(v))
	return uint64(h.Sum32())
}

const (
	fieldLabels      = "labels"
	fieldAnnotations = "annotations"
)

// metadataReference is the label or annotation that the variable reads, if it reads one.
func metadataReference(e *corev1.EnvVar) (field, key string, ok bool) {
	if e.Name == contract.SidecarSetVersionEnv || e.Name == contract.SidecarSetVersionAltEnv {
		return "", "", false
	}
	if e.Value != "" || e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
		return "", "", false
	}
	for _, field := range [...]string{fieldLabels, fieldAnnotations} {
		if rest, ok := strings.CutPrefix(e.ValueFrom.FieldRef.FieldPath, "metadata."+field+"['"); ok {
			if key, ok := strings.CutSuffix(rest, "']"); ok {
				return field, key, true
			}
		}
	}
	return "", "", false
}

// readsMetadata says whether the container has a variable that reads the key, or any key when it is empty.
func readsMetadata(c *corev1.Container, field, key string) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		f, k, ok := metadataReference(&e)
		return ok && (key == "" || f == field && k == key)
	})
}
