package cloneset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// PullJobs looks for image pull jobs as rollouts do.
type PullJobs struct{ jobs *pullJobs }

// NewPullJobs has seen nothing yet.
func NewPullJobs(d Discovery, c cache.Cache, k clock.PassiveClock) PullJobs {
	return PullJobs{&pullJobs{discovery: d, cache: c, clock: k, recent: map[types.NamespacedName]pullAttempt{}}}
}

// Look says in which version the kind is served and why jobs cannot be read.
func (p PullJobs) Look(ctx context.Context) (version, problem string) { return p.jobs.look(ctx, true) }

// Fail tells of a write that did not succeed.
func (p PullJobs) Fail() { p.jobs.remember(types.NamespacedName{Name: "web"}, pullAttempt{}, true) }
