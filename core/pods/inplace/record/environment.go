package record

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
)

// envHashAfter is agentreport.ExpectedEnvHash for the metadata that the pod will have after the change.
func envHashAfter(m Metadata, c *corev1.Container, pod *corev1.Pod) uint64 {
	return agentreport.EnvHash(c, func(_ *corev1.EnvVar, field, key string) string {
		have, changed := pod.Labels, m.Labels
		if field == agentreport.FieldAnnotations {
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

// HasRead reports whether the container was started with the environment that the metadata gives it, as the node agent
// reports.
func HasRead(m Metadata, c *corev1.Container, pod *corev1.Pod) bool {
	if !agentreport.ReadsMetadata(c) {
		return true
	}
	read, known := agentreport.StartedWith(pod, c.Name)
	return known && read == envHashAfter(m, c, pod)
}
