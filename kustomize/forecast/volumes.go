package forecast

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// readers is how many volumes are read at once.
const readers = 16

// ReadVolumes reads the volumes to which the claims of the scene are bound. Who may not read them gets a line in s.Unread.
func (s *Scene) ReadVolumes(ctx context.Context, client *workload.Client) {
	var names []string
	for _, claim := range s.Claims {
		if claim.Spec.VolumeName != "" {
			names = append(names, claim.Spec.VolumeName)
		}
	}
	volumes := make([]*corev1.PersistentVolume, len(names))
	errs := make([]error, len(names))
	workqueue.ParallelizeUntil(ctx, readers, len(names), func(i int) {
		volumes[i], errs[i] = client.Core.CoreV1().PersistentVolumes().Get(ctx, names[i], metav1.GetOptions{})
	})
	var failed error
	for i, err := range errs {
		switch {
		case err == nil && volumes[i] != nil:
			s.Volumes = append(s.Volumes, volumes[i])
		case !apierrors.IsNotFound(err):
			failed = cmp.Or(failed, err)
		}
	}
	if failed != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("persistent volumes cannot be read, and each is taken to be mountable on all nodes: %s", failed))
	}
}

// claimsOf returns the names of the claims that a pod mounts.
func claimsOf(pod *corev1.PodSpec) []string {
	var names []string
	for i := range pod.Volumes {
		if source := pod.Volumes[i].PersistentVolumeClaim; source != nil {
			names = append(names, source.ClaimName)
		}
	}
	return names
}
