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
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// remove evicts or deletes a pod, as often as budgets refuse it, and waits until it is gone.
func (d *drain) remove(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	said := ""
	for pod.DeletionTimestamp == nil {
		err := d.request(ctx, pod)
		if err == nil || overtaken(err) {
			break
		}
		// Budgets and a busy server return 429. A webhook that judges evictions may itself be on the node, and moves.
		if !ofAMoment(err) {
			return fmt.Errorf("%s pod %s: %w", d.verb(), name, err)
		}
		if text := err.Error(); text != said {
			d.tell("pod %s waits: %s", name, text)
			said = text
		}
		if err := d.sleep(ctx, d.again); err != nil {
			d.did(pod, cli.Refused, said)
			return fmt.Errorf("%s pod %s: %w", d.verb(), name, err)
		}
	}
	return d.gone(ctx, pod)
}

// request asks the API server to evict or delete a pod, and no other one of its name.
func (d *drain) request(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, DryRun: d.asked()}
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	if d.disableEviction {
		return d.client.Core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	}
	return d.client.Core.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options,
	})
}

// overtaken reports that another client was faster.
func overtaken(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// ofAMoment reports whether a request may succeed later. A PodUnavailableBudget refuses a deletion with 403 and the cause of
// budgets.
func ofAMoment(err error) bool {
	return apply.OfAMoment(err) || apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

// verb names the request that makes pods leave.
func (d *drain) verb() string {
	if d.disableEviction {
		return "delete"
	}
	return "evict"
}

func (d *drain) participle() string {
	if d.disableEviction {
		return "deleted"
	}
	return "evicted"
}

// gone waits until a pod has gone. Another one may have taken its name.
func (d *drain) gone(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	for {
		now, err := d.client.Core.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			d.tell("pod %s is gone", name)
			d.did(pod, cli.Removed, "")
			return nil
		}
		if err == nil && d.options.skips(now, d.clock.Now()) {
			why := fmt.Sprintf("its deletion is older than %s, and the command does not wait for its end", d.options.skipAfter)
			d.tell("pod %s stays (%s)", name, why)
			d.did(pod, cli.Unchanged, why)
			d.report.Leave(name)
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
