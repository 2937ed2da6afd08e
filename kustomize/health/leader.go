package health

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

const (
	// leaderPatience is how long an operator may be without a leader: a new one takes over after 15 seconds.
	leaderPatience = time.Minute
	// renewal is longer than the pause after which a leader renews its Lease.
	renewal = 4 * time.Second
	// noLeader ends the fault of a manager without a leading replica.
	noLeader = "no controller runs"
)

// followLeader adds a fault if the manager is available and none of its replicas leads. A replica leads once its caches are
// filled, which readiness does not wait for.
func (r *Report) followLeader(ctx context.Context, cluster *apply.Cluster, clock clock.Clock) error {
	lease := apply.LeaseOf(r.manager)
	if lease == nil {
		return nil
	}
	look := func() (string, string, error) {
		live, err := cluster.Get(ctx, lease)
		if err != nil || live == nil {
			return leaderless(lease, nil, r.manager, clock.Now()), "", err
		}
		return leaderless(lease, live, r.manager, clock.Now()), live.GetResourceVersion(), nil
	}
	fault, before, err := look()
	if apierrors.IsForbidden(err) {
		return nil // a user who may not see Leases sees the other faults
	}
	if err != nil || fault == "" {
		return err
	}
	// The clock of this machine may differ from the clocks of the nodes. A Lease that changes has a holder.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-clock.After(renewal):
	}
	fault, after, err := look()
	if err == nil && fault != "" && before == after {
		r.Faults = append(r.Faults, fault)
		r.Healthy = false
	}
	return err
}

// leaderless reports that no replica leads, and for how long; empty if one leads, or if none needs to yet. live is the Lease
// as it is, nil if there is none.
func leaderless(lease, live, manager *unstructured.Unstructured, now time.Time) string {
	since, available := availableSince(manager)
	if !available {
		return ""
	}
	if live != nil {
		text, _, _ := unstructured.NestedString(live.Object, "spec", "renewTime")
		if renewed, err := time.Parse(time.RFC3339, text); err == nil && renewed.After(since) {
			since = renewed
		}
	}
	age := now.Sub(since)
	if age <= leaderPatience {
		return ""
	}
	return fmt.Sprintf("%s has no leader: Lease %s/%s has had no holder for %s, and %s",
		apply.Describe(manager), lease.GetNamespace(), lease.GetName(), age.Truncate(time.Second), noLeader)
}

// availableSince returns since when a Deployment has been available.
func availableSince(deployment *unstructured.Unstructured) (since time.Time, available bool) {
	conditions, _, _ := unstructured.NestedSlice(deployment.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Available" && fields["status"] == "True" {
			text, _ := fields["lastTransitionTime"].(string)
			since, err := time.Parse(time.RFC3339, text)
			return since, err == nil
		}
	}
	return time.Time{}, false
}

// leaderHelp is the remedy for a manager without a leader.
func leaderHelp(feature string) string {
	return "The usual causes are a missing permission, or a kind that is not served. doctor or its log names it: kubectl -n " +
		install.Namespace + " logs deployment/" + feature + "-manager"
}
