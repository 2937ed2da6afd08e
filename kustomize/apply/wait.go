package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

// pause is the time between two looks at the awaited condition.
const pause = 300 * time.Millisecond

// Check reports whether a condition is met, and if not, the reason for the wait.
type Check func(ctx context.Context) (done bool, waitsFor string, err error)

// Await looks again and again until the check is done or the time is over, and shows the reason for the wait. The error of a
// timeout has this reason too.
func Await(ctx context.Context, timeout time.Duration, tell func(string), check Check) error {
	last := ""
	// A look is not cut short by the timeout: its result is shown.
	err := wait.PollUntilContextTimeout(ctx, pause, timeout, true, func(context.Context) (bool, error) {
		done, waitsFor, err := check(ctx)
		if err != nil && ctx.Err() == nil && OfAMoment(err) {
			done = false
			waitsFor = err.Error()
			err = nil
		}
		if err == nil && !done && waitsFor != last {
			last = waitsFor
			tell(waitsFor)
		}
		return done, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("not ready after %s: %s", timeout, last)
	}
	return errors.Join(err, ctx.Err())
}

// OfAMoment reports whether an error may go by itself: a lost connection, a server that is busy or restarts, or a webhook
// that does not answer.
func OfAMoment(err error) bool {
	var network net.Error
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsUnexpectedServerError(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsHTTP2ConnectionLost(err) ||
		errors.As(err, &network)
}

// AllReady checks that all objects do their work.
func (c *Cluster) AllReady(objects []*unstructured.Unstructured) Check {
	return c.each(objects, func(ctx context.Context, live *unstructured.Unstructured) (bool, string, error) {
		ready, waitsFor := Ready(live)
		if !ready && live.GetKind() == "DaemonSet" {
			cause, err := c.PodsRefused(ctx, live)
			if err != nil {
				return false, "", err
			}
			if cause != "" {
				waitsFor += ": " + cause
			}
		}
		return ready, waitsFor, nil
	})
}

// PodsRefused returns why the pods of a DaemonSet cannot be made. The reason is in its newest event about this, because it
// has no condition for it.
func (c *Cluster) PodsRefused(ctx context.Context, set *unstructured.Unstructured) (string, error) {
	about := fields.Set{"involvedObject.uid": string(set.GetUID()), "reason": "FailedCreate"}
	events, err := c.list(ctx, schema.GroupVersionResource{Version: "v1", Resource: "events"}, set.GetNamespace(),
		metav1.ListOptions{FieldSelector: about.AsSelector().String()})
	if err != nil {
		return "", err
	}
	cause, newest := "", ""
	for _, event := range events {
		at, _, _ := unstructured.NestedString(event.Object, "lastTimestamp")
		if at >= newest {
			newest = at
			cause, _, _ = unstructured.NestedString(event.Object, "message")
		}
	}
	return cause, nil
}

// AllServed checks that the kinds of all CRDs among the objects are served, and that clients find them: discovery names a
// kind a moment after its CRD is established.
func (c *Cluster) AllServed(objects []*unstructured.Unstructured) Check {
	return c.each(objects, func(_ context.Context, live *unstructured.Unstructured) (bool, string, error) {
		switch {
		case live.GetKind() != "CustomResourceDefinition":
			return true, "", nil
		case !Established(live):
			return false, notServed, nil
		}
		found, err := c.found(live)
		return found, notServed, err
	})
}

// found reports whether discovery names the kind of a CRD in all versions that are served.
func (c *Cluster) found(crd *unstructured.Unstructured) (bool, error) {
	_, lists, err := c.fresh.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // an API service of others may not answer
		return false, fmt.Errorf("read the kinds that the cluster serves: %w", err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	missing := servedVersions(crd)
	for _, list := range lists {
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			missing = slices.DeleteFunc(missing, func(version string) bool { return list.GroupVersion == group+"/"+version })
		}
	}
	return len(missing) == 0, nil
}

// AllStarted checks that the processes of all Deployments among the objects run, ready or not.
func (c *Cluster) AllStarted(objects []*unstructured.Unstructured) Check {
	return c.each(objects, func(ctx context.Context, live *unstructured.Unstructured) (bool, string, error) {
		if live.GetKind() != "Deployment" {
			return true, "", nil
		}
		if ready, _ := Ready(live); ready {
			return true, "", nil
		}
		pods, err := c.PodsOf(ctx, live)
		if err != nil {
			return false, "", err
		}
		started, waitsFor := Started(pods, ImageOf(live))
		if cause := ReplicaFailure(live); !started && cause != "" {
			waitsFor += ": " + cause
		}
		return started, waitsFor, nil
	})
}

// PodsOf returns the pods of a Deployment or DaemonSet of an operator.
func (c *Cluster) PodsOf(ctx context.Context, workload *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "template", "metadata", "labels")
	selector := "app.kubernetes.io/name=" + labels["app.kubernetes.io/name"]
	return c.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, workload.GetNamespace(), selector)
}

// Started reports whether a pod with this image runs, and if not, the state that its container waits in.
func Started(pods []unstructured.Unstructured, image string) (started bool, waitsFor string) {
	life, waitsFor := Running(pods, image)
	return life != "", waitsFor
}

// Running returns the life of a pod's container that runs this image, which a restart ends. Without such a container it
// returns the state that the containers wait in.
func Running(pods []unstructured.Unstructured, image string) (life, waitsFor string) {
	waitsFor = "has no pod yet"
	for _, pod := range pods {
		if imageOf(pod.Object, "spec") != image {
			continue
		}
		waitsFor = "pod " + pod.GetName() + " is not scheduled yet"
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		for _, status := range statuses {
			fields, ok := status.(map[string]any)
			if !ok {
				continue
			}
			if _, running, _ := unstructured.NestedMap(fields, "state", "running"); running {
				return fmt.Sprintf("%s/%v", pod.GetUID(), fields["restartCount"]), ""
			}
			reason, _, _ := unstructured.NestedString(fields, "state", "waiting", "reason")
			message, _, _ := unstructured.NestedString(fields, "state", "waiting", "message")
			waitsFor = strings.TrimSpace("pod " + pod.GetName() + ": " + reason + " " + message)
		}
	}
	return "", waitsFor
}

// ImageOf returns the image of the manager of a Deployment.
func ImageOf(deployment *unstructured.Unstructured) string {
	return imageOf(deployment.Object, "spec", "template", "spec")
}

// imageOf returns the image of the first container of a pod's spec.
func imageOf(object map[string]any, path ...string) string {
	containers, _, _ := unstructured.NestedSlice(object, append(path, "containers")...)
	if len(containers) == 0 {
		return ""
	}
	fields, _ := containers[0].(map[string]any)
	image, _ := fields["image"].(string)
	return image
}

// each checks the live state of every object in turn.
func (c *Cluster) each(
	objects []*unstructured.Unstructured, check func(context.Context, *unstructured.Unstructured) (bool, string, error),
) Check {
	return func(ctx context.Context) (bool, string, error) {
		for _, object := range objects {
			live, err := c.Get(ctx, object)
			if err != nil {
				return false, "", err
			}
			if live == nil {
				return false, Describe(object) + " is gone", nil
			}
			done, waitsFor, err := check(ctx, live)
			if err != nil || !done {
				return false, Describe(object) + " " + waitsFor, err
			}
		}
		return true, "", nil
	}
}
