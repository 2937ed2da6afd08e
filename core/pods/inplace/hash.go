package inplace

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/hash"
)

// EnvHash is the hash of those variables of the container that read a label or an annotation, with
// the values that lookup gives: "labels" or "annotations" and the key, or for the node agent the
// variable's name in the real environment.
func EnvHash(c *corev1.Container, value func(env *corev1.EnvVar, field, key string) string) uint64 {
	var list []corev1.EnvVar
	for i := range c.Env {
		if field, key, ok := metadataReference(&c.Env[i]); ok && !hidden(c, i) {
			list = append(list, corev1.EnvVar{Name: c.Env[i].Name, Value: value(&c.Env[i], field, key)})
		}
	}
	slices.SortFunc(list, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return textHash(encode(list))
}

// ExpectedEnvHash returns the hash that the container has once it has read the pod's present metadata.
func ExpectedEnvHash(c *corev1.Container, pod *corev1.Pod) uint64 {
	return EnvHash(c, func(_ *corev1.EnvVar, field, key string) string {
		if field == fieldAnnotations {
			return pod.Annotations[key]
		}
		return pod.Labels[key]
	})
}

// envHashAfter is ExpectedEnvHash for the metadata that the pod will have after the change.
func envHashAfter(m Metadata, c *corev1.Container, pod *corev1.Pod) uint64 {
	return EnvHash(c, func(_ *corev1.EnvVar, field, key string) string {
		have, changed := pod.Labels, m.Labels
		if field == fieldAnnotations {
			have, changed = pod.Annotations, m.Annotations
		}
		value, ok := changed[key]
		switch {
		case !ok:
			return have[key]
		case value == nil:
			return ""
		}
		return *value
	})
}

// hasRead reports whether the container was started with the environment that the metadata gives it, as the node agent
// reports.
func hasRead(m Metadata, c *corev1.Container, pod *corev1.Pod) bool {
	if !ReadsMetadata(c) {
		return true
	}
	read, known := startedWith(pod, c.Name)
	return known && read == envHashAfter(m, c, pod)
}

// startedWith is the hash of the environment of the container that the status shows; false when the node agent has not
// reported that container, or does not look at environments.
func startedWith(pod *corev1.Pod, name string) (uint64, bool) {
	running := runtimeContainer(pod, statusOf(pod, name))
	if running == nil {
		return 0, false
	}
	read := running.Hashes.ExtractedEnvFromMetadataHash
	return read, read != 0
}

// yetToStart reports whether the container was never started, on a node with an agent that looks at environments. It
// will read the pod's metadata of the moment when it starts, or the agent restarts it.
func yetToStart(pod *corev1.Pod, name string) bool {
	if status := statusOf(pod, name); status != nil && status.ContainerID != "" {
		return false
	}
	meta, err := ReadRuntimeContainersMeta(pod)
	return err == nil && meta != nil && !slices.ContainsFunc(meta.Containers, func(c RuntimeContainer) bool {
		return c.Hashes.ExtractedEnvFromMetadataHash == 0
	})
}

// plainHashes are the hashes by which kubelets know a container of the spec: those from 1.31 on hash
// name and image only, older ones all of it.
func plainHashes(c *corev1.Container) [2]uint64 {
	return [2]uint64{
		textHash(encode(map[string]string{"image": c.Image, "name": c.Name})),
		textHash(encode(c)),
	}
}

// textHash hashes bytes in the way in which Kubernetes' controllers hash templates.
func textHash(text string) uint64 { return uint64(hash.Object([]byte(text))) }

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

// readsMetadata reports whether the container has a variable that reads the key, or any key when it is empty.
func readsMetadata(c *corev1.Container, field, key string) bool {
	for i := range c.Env {
		f, k, ok := metadataReference(&c.Env[i])
		if ok && (key == "" || f == field && k == key) && !hidden(c, i) {
			return true
		}
	}
	return false
}

// hidden reports whether a later variable of the same name hides the one at the index: the process has the value of the
// last one.
func hidden(c *corev1.Container, i int) bool {
	return slices.ContainsFunc(c.Env[i+1:], func(later corev1.EnvVar) bool { return later.Name == c.Env[i].Name })
}

// ReadsMetadata reports whether the container has a variable that reads a label or an annotation.
func ReadsMetadata(c *corev1.Container) bool { return readsMetadata(c, "", "") }
