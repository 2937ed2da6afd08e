package execute

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// dryRun sends writes as a server-side dry run, if the action asks for it because a refusal of the real write would
// come too late.
func (p *pass) dryRun(ctx context.Context, a *action.Action) progress.Outcome {
	if !a.DryRun {
		return progress.Outcome{State: progress.Done}
	}
	if a.Verb == action.Create && len(a.Prerequisites) > 0 {
		err := p.dryRunCreate(ctx, a)
		if apierrors.IsAlreadyExists(err) {
			return p.collision(ctx, a.Object, err)
		}
		return progress.DryRunOutcome(err)
	}
	return progress.DryRunOutcome(p.dryRunPatches(ctx, a))
}

func (p *pass) dryRunCreate(ctx context.Context, a *action.Action) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	if err := p.options.Client.Create(ctx, a.Object.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
		return fmt.Errorf("create %s: %w", p.name(a.Object), err)
	}
	return nil
}

// dryRunPatches sends each patch as a dry run.
func (p *pass) dryRunPatches(ctx context.Context, a *action.Action) error {
	for _, change := range a.DryRunPatches() {
		planned, err := p.metadata(a.Object)
		if err != nil {
			return err
		}
		if err := p.send(ctx, planned, change, true); err != nil {
			return fmt.Errorf("patch %s: %w", p.part(a, change), err)
		}
	}
	return nil
}

// part names the (sub)resource that a patch writes to, for messages.
func (p *pass) part(a *action.Action, change action.Patch) string {
	if change.Subresource == "" {
		return p.name(a.Object)
	}
	return change.Subresource + " of " + p.name(a.Object)
}
