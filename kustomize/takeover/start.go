package takeover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// startStep is the step before which, and during which, OpenKruise loses nothing.
const startStep = "start the operator"

// steady is how long a manager must have run to be taken for one that starts: bad flags and images end it at once.
const steady = 5 * time.Second

// start starts the operator and waits until it would lead. Its webhooks are not configured yet, and it waits for them
// before its controllers start.
func (h *handover) start(ctx context.Context) error {
	if err := h.replacement.Start(ctx, h.cluster); err != nil || !h.replacement.Wait {
		return err
	}
	var seen sighting
	return apply.Await(ctx, h.timeout, h.progress.Tell, func(ctx context.Context) (bool, string, error) {
		found, err := h.candidate(ctx)
		if err != nil {
			return false, "", err
		}
		seen.look(found.life, h.clock.Now())
		waitsFor := found.waitsFor(seen, h.clock.Now())
		return waitsFor == "", waitsFor, nil
	})
}

// sighting is since when the same life of a container is seen.
type sighting struct {
	life  string
	since time.Time
}

func (s *sighting) look(life string, now time.Time) {
	if life != s.life {
		s.life, s.since = life, now
	}
}

// candidate has the facts that show whether an operator would lead.
type candidate struct {
	manager, secret, lease *unstructured.Unstructured // nil if there is none
	pods                   []unstructured.Unstructured
	life, stopped          string
}

func (h *handover) candidate(ctx context.Context) (candidate, error) {
	var found candidate
	name := h.feature() + "-manager"
	var err error
	if found.manager, err = h.cluster.Get(ctx, inNamespace("apps/v1", "Deployment", name)); err != nil {
		return found, err
	}
	if found.manager == nil {
		return found, fmt.Errorf("the Deployment %s/%s is gone", install.Namespace, name)
	}
	if found.secret, err = h.cluster.Get(ctx, inNamespace("v1", "Secret", h.feature()+"-webhook-certs")); err != nil {
		return found, err
	}
	if lease := apply.LeaseOf(found.manager); lease != nil {
		if found.lease, err = h.cluster.Get(ctx, lease); err != nil {
			return found, err
		}
	}
	if found.pods, err = h.cluster.PodsOf(ctx, found.manager); err != nil {
		return found, err
	}
	found.life, found.stopped = apply.Running(found.pods, apply.ImageOf(found.manager))
	return found, nil
}

// waitsFor returns why the operator would not lead yet, empty if it would. A process that has been up for a while has read
// its flags; one that has made its certificates reaches the API server and has its rights; and no other process has its
// Lease.
func (c candidate) waitsFor(seen sighting, now time.Time) string {
	name := c.manager.GetName()
	if ready, _ := apply.Ready(c.manager); ready {
		return ""
	}
	switch {
	case c.life == "":
		if cause := apply.ReplicaFailure(c.manager); cause != "" {
			return name + " " + c.stopped + ": " + cause
		}
		return name + " " + c.stopped
	case now.Sub(seen.since) < steady:
		return name + " has just started"
	case !hasCertificate(c.secret):
		return fmt.Sprintf("%s has not created its certificates yet. Find the cause in its log: kubectl -n %s logs deployment/%s", name, install.Namespace, name)
	}
	if holder := c.holder(now); holder != "" {
		return fmt.Sprintf("Lease %s/%s is held by %s", c.lease.GetNamespace(), c.lease.GetName(), holder)
	}
	return ""
}

func hasCertificate(secret *unstructured.Unstructured) bool {
	if secret == nil {
		return false
	}
	certificate, _, _ := unstructured.NestedString(secret.Object, "data", "tls.crt")
	return certificate != ""
}

// holder returns the process that leads instead of the operator's pods, empty if there is none.
func (c candidate) holder(now time.Time) string {
	if c.lease == nil {
		return ""
	}
	holder, _, _ := unstructured.NestedString(c.lease.Object, "spec", "holderIdentity")
	renewed, _, _ := unstructured.NestedString(c.lease.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(c.lease.Object, "spec", "leaseDurationSeconds")
	at, err := time.Parse(time.RFC3339, renewed)
	if holder == "" || err == nil && now.After(at.Add(time.Duration(seconds)*time.Second)) {
		return ""
	}
	for _, pod := range c.pods {
		if strings.HasPrefix(holder, pod.GetName()+"_") {
			return ""
		}
	}
	return holder
}

// inNamespace returns an object in the operators' namespace by its name.
func inNamespace(apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(install.Namespace)
	object.SetName(name)
	return object
}
