package podmarks

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// maxNameLength is the longest name of a ConfigMap.
const maxNameLength = 253

// BarrierLabel marks ConfigMaps that hold the barriers of a pod, so that the cache holds no others.
const BarrierLabel = "apps.kruise.io/container-launch-barrier"

// ConfigMapName returns the name of the ConfigMap with the barriers of a pod. A name that would be too long is cut and
// ends with a hash.
func ConfigMapName(pod string) string {
	if len(pod)+len(contract.ContainerBarrierConfigMapSuffix) > maxNameLength {
		h := fnv.New32a()
		_, _ = h.Write([]byte(pod))
		hash := fmt.Sprintf("-%08x", h.Sum32())
		cut := maxNameLength - len(contract.ContainerBarrierConfigMapSuffix) - len(hash)
		pod = strings.TrimRight(pod[:cut], "-.") + hash
	}
	return pod + contract.ContainerBarrierConfigMapSuffix
}

// Barrier returns the environment variable that keeps a container of the pod from starting: the kubelet cannot create
// the container before the ConfigMap has the key.
func Barrier(pod string, priority int) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ConfigMapName(pod)},
			Key:                  Key(priority),
		},
	}}
}

// Key returns the key that opens the barriers of a priority.
func Key(priority int) string { return contract.ContainerBarrierKeyPrefix + strconv.Itoa(priority) }

// HasBarrier reports whether a container of the pod waits, or waited, behind a barrier of the pod's ConfigMap.
func HasBarrier(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if _, ok := BarrierOf(pod, &pod.Spec.Containers[i]); ok {
			return true
		}
	}
	return false
}

// BarrierOf returns the key of a container's barrier. A variable of the name that reads anything but the pod's own
// ConfigMap is not a barrier.
func BarrierOf(pod *corev1.Pod, c *corev1.Container) (string, bool) {
	for _, e := range c.Env {
		if e.Name != contract.ContainerBarrierEnv || e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref.Name == ConfigMapName(pod.Name) {
			return ref.Key, true
		}
	}
	return "", false
}

// PriorityOf reads the priority from the key of a barrier.
func PriorityOf(key string) (int, bool) {
	text, ok := strings.CutPrefix(key, contract.ContainerBarrierKeyPrefix)
	priority, err := strconv.Atoi(text)
	return priority, ok && err == nil && Key(priority) == key
}
