package optional

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// grantedAge and lackingAge are how long it is believed that all rights are there, and that some are not.
	grantedAge = 10 * time.Second
	lackingAge = 4 * time.Second
)

// Rights are the verbs that a controller may use on a resource, in one namespace or, if that is empty, in all; on one
// object of it, if there is a Name.
type Rights struct {
	Namespace, Group, Resource, Name string
	Verbs                            []string
}

// Lacking asks the server which of the verbs it would refuse.
func (r Rights) Lacking(ctx context.Context, c client.Writer) (verbs []string, err error) {
	for _, verb := range r.Verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: r.Namespace,
				Group:     r.Group,
				Resource:  r.Resource,
				Name:      r.Name,
				Verb:      verb,
			},
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("check the permission to %s: %w", verb, err)
		}
		if !review.Status.Allowed {
			forbidden.WithLabelValues(verb, r.Group, r.Resource).Inc()
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// Access knows whether the process has rights. It asks when it is asked, and then at most every few seconds. It is safe
// for concurrent use.
type Access struct {
	// Rights are the rights in question.
	Rights Rights
	// Client asks the server.
	Client client.Writer
	// Clock returns the time.
	Clock clock.PassiveClock

	mu    sync.Mutex
	lacks []string
	until time.Time
}

// known returns the verbs that were lacking in the last answer, or all verbs before the first answer.
func (a *Access) known() []string {
	if a.until.IsZero() {
		return a.Rights.Verbs
	}
	return a.lacks
}

// Lacking returns the verbs that the server refuses, none if all are allowed. If the server does not answer, its last
// answer counts, or else all verbs are lacking.
func (a *Access) Lacking(ctx context.Context) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Clock.Now()
	if now.Before(a.until) {
		return a.lacks
	}
	lacks, err := a.Rights.Lacking(ctx, a.Client)
	switch {
	case err != nil && ctx.Err() != nil: // who asks has ended
		return a.known()
	case err != nil:
		log.FromContext(ctx).Error(err, "Failed to check permissions", "resource", a.Rights.Resource, "namespace", a.Rights.Namespace)
		a.lacks = a.known()
	case !slices.Equal(lacks, a.lacks):
		log.FromContext(ctx).Info("The permissions of the process have changed", "resource", a.Rights.Resource, "namespace", a.Rights.Namespace, "lacking", strings.Join(lacks, ","))
		a.lacks = lacks
	}
	a.until = now.Add(grantedAge)
	if len(a.lacks) > 0 {
		a.until = now.Add(lackingAge)
	}
	return a.lacks
}
