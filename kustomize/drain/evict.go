package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// evict evicts a pod, as often as budgets refuse it, and waits until it is gone.
func (d *drain) evict(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	if d.grace >= 0 {
		eviction.DeleteOptions.GracePeriodSeconds = &d.grace
	}
	said := ""
	for pod.DeletionTimestamp == nil {
		err := d.client.Core.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		if err == nil {
			break
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return d.gone(ctx, pod) // another client was faster
		}
		// Budgets and a busy server return 429. A webhook that judges evictions may itself be on the node, and moves.
		if !apply.OfAMoment(err) {
			return fmt.Errorf("evict pod %s: %w", name, err)
		}
		if text := err.Error(); text != said {
			d.tell("pod %s waits: %s", name, text)
			said = text
		}
		if err := d.sleep(ctx, d.again); err != nil {
			return fmt.Errorf("evict pod %s: %w", name, err)
		}
	}
	return d.gone(ctx, pod)
}

// gone waits until a pod has gone. Another one may have taken its name.
func (d *drain) gone(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	for {
		now, err := d.client.Core.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			d.tell("pod %s is gone", name)
			return nil
		}
		if err != nil && !apply.OfAMoment(err) {
			return fmt.Errorf("read pod %s: %w", name, err)
		}
		if err := d.sleep(ctx, d.look); err != nil {
			return fmt.Errorf("wait for the deletion of pod %s: %w", name, err)
		}
	}
}

func (d *drain) sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.clock.After(pause):
		return nil
	}
}
