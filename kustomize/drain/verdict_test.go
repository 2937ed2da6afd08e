package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatADrainDoesWithAPod(t *testing.T) {
	owner := func(version, kind string) func(p *corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "web", Controller: new(true)}}
		}
	}
	scratch := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	ended := func(at int64) func(p *corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(at, 0)} }
	}
	cloneSet := owner("apps.kruise.io/v1beta1", "CloneSet")
	for _, c := range []struct {
		name    string
		changes []func(p *corev1.Pod)
		options options
		want    verdict
		why     string
	}{
		{"a pod of a CloneSet", []func(*corev1.Pod){cloneSet}, options{}, evicted, ""},
		{"a pod of a DaemonSet of ours", []func(*corev1.Pod){owner("apps.kruise.io/v1alpha1", "DaemonSet"), scratch}, options{}, stays, "pod of DaemonSet web"},
		{"a pod of the built-in DaemonSet", []func(*corev1.Pod){owner("apps/v1", "DaemonSet")}, options{}, stays, "pod of DaemonSet web"},
		{"a pod of a DaemonSet of others", []func(*corev1.Pod){owner("example.io/v1", "DaemonSet")}, options{}, evicted, ""},
		{"a pod of a DaemonSet that has ended", []func(*corev1.Pod){owner("apps/v1", "DaemonSet"), finished}, options{}, evicted, ""},
		{
			"a static pod", []func(*corev1.Pod){func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }},
			options{}, stays, "static pod",
		},
		{"a pod of nobody", nil, options{}, refused, "it has no controller that would recreate it; to evict it, add --force"},
		{"a pod of nobody, by force", nil, options{force: true}, evicted, ""},
		{"a pod of nobody that has ended", []func(*corev1.Pod){finished}, options{}, evicted, ""},
		{"a pod with data", []func(*corev1.Pod){cloneSet, scratch}, options{}, refused, "the data of its emptyDir volumes would be lost; to evict it, add --delete-emptydir-data"},
		{"a pod with data that may go", []func(*corev1.Pod){cloneSet, scratch}, options{deleteEmptyDirs: true}, evicted, ""},
		{"a pod that ends", []func(*corev1.Pod){scratch, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }}, options{}, evicted, ""},
		{"a pod that ended too long ago", []func(*corev1.Pod){ended(939)}, options{skipAfter: time.Minute}, stays, "its deletion is older than 1m0s"},
		{"a pod that ended just now", []func(*corev1.Pod){ended(940)}, options{skipAfter: time.Minute}, evicted, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			for _, change := range c.changes {
				change(pod)
			}
			got, why := judge(pod, c.options, time.Unix(1000, 0))
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.why, why)
		})
	}
}
