package diff

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
)

// LoweredLimit is the path of a limit of memory that the cluster does not lower, or empty.
func (o Options) LoweredLimit(c *corev1.Container, want corev1.ResourceRequirements) string {
	if !o.KeepMemoryLimits || c == nil {
		return ""
	}
	old, limited := c.Resources.Limits[corev1.ResourceMemory]
	now, ok := want.Limits[corev1.ResourceMemory]
	if !limited || !ok || now.Cmp(old) >= 0 {
		return ""
	}
	if quantity.Restarts(c, corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: now}}) {
		return ""
	}
	return "limits." + string(corev1.ResourceMemory)
}

// NotLowered is the error for the memory limit at the path.
func NotLowered(path string) *NotPossibleError {
	return &NotPossibleError{Path: path, Message: "Kubernetes 1.33 lowers a memory limit only with resizePolicy RestartContainer"}
}
