package takeover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

type takeover struct {
	streams         genericiooptions.IOStreams
	flags           genericclioptions.RESTClientGetter
	old             manager
	settings        install.Settings
	dryRun, back    bool
	wait            bool
	timeout, settle time.Duration
	clock           clock.Clock
}

func (t *takeover) run(ctx context.Context, features []catalog.Feature) error {
	cluster, err := apply.Connect(t.flags)
	if err != nil {
		return err
	}
	if _, err := cluster.Version(); err != nil {
		return err
	}
	before, err := apply.ConnectAs(t.flags, t.old.user())
	if err != nil {
		return err
	}
	for _, feature := range features {
		if err := t.one(ctx, cluster, before, feature); err != nil {
			return fmt.Errorf("%s: %w", feature.Name, err)
		}
	}
	return nil
}

// one shows, takes over or gives back a feature.
func (t *takeover) one(ctx context.Context, cluster, before *apply.Cluster, feature catalog.Feature) error {
	manifests, err := install.Manifests(feature, t.settings)
	if err != nil {
		return err
	}
	h := &handover{
		cluster: cluster, before: before, old: t.old, kinds: kindsOf(manifests), manifests: manifests, timeout: t.timeout,
		replacement: install.Replacement{
			Feature: feature, Settings: t.settings, Wait: t.wait, Timeout: t.timeout, Out: t.streams.Out,
		},
		tell: func(step string) { fmt.Fprintf(t.streams.Out, "%s: %s: done\n", feature.Name, step) },
	}
	if !t.back {
		plan, err := t.plan(ctx, cluster, feature, manifests)
		if err != nil {
			return err
		}
		plan.print(t.streams.Out)
	}
	if t.dryRun {
		return nil
	}
	if err := h.allowed(ctx); err != nil {
		return err
	}
	was, err := podsNow(ctx, cluster)
	if err != nil {
		return err
	}
	do := h.run
	if t.back {
		do = h.undo
	}
	if err := do(ctx); err != nil {
		if !t.back {
			return fmt.Errorf("%w; run the command again, or go back: %s", err, t.wayBack(feature))
		}
		return err
	}
	if !t.back {
		fmt.Fprintf(t.streams.Out, "%s: the way back: %s\n", feature.Name, t.wayBack(feature))
	}
	return t.verify(ctx, cluster, was)
}

// verify compares pods with what they were before, after the operator has worked for a while.
func (t *takeover) verify(ctx context.Context, cluster *apply.Cluster, was map[string]podState) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.clock.After(t.settle):
	}
	is, err := podsNow(ctx, cluster)
	if err != nil {
		return err
	}
	if lines := changed(was, is); len(lines) > 0 {
		return cli.NoErrorf("pods changed meanwhile, by whomever:\n  %s", strings.Join(lines, "\n  "))
	}
	fmt.Fprintf(t.streams.Out, "%d pods: none was written or restarted\n", len(was))
	return nil
}

// podsNow returns the states of all pods of OpenKruise's kinds.
func podsNow(ctx context.Context, cluster *apply.Cluster) (map[string]podState, error) {
	pods, err := cluster.List(ctx, podResource(), "", "")
	if err != nil {
		return nil, err
	}
	return remember(pods)
}

// wayBack returns the command that gives a feature back.
func (t *takeover) wayBack(feature catalog.Feature) string {
	command := "flotilla takeover " + feature.Name + " --undo"
	if t.old.namespace != oldNamespace {
		command += " --from-namespace " + t.old.namespace
	}
	if t.old.account != oldAccount {
		command += " --from-account " + t.old.account
	}
	return command
}

func (t *takeover) plan(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature, manifests []*unstructured.Unstructured) (Plan, error) {
	world, err := look(ctx, cluster, t.old, feature, manifests)
	if err != nil {
		return Plan{}, err
	}
	if len(world.Configurations) == 0 && len(world.Managers) == 0 {
		return Plan{}, fmt.Errorf("there is no OpenKruise here: no %s, and no Deployment in namespace %s runs as %s; flotilla install %s needs nothing else",
			strings.Join(described(configurations()), ", "), t.old.namespace, t.old.account, feature.Name)
	}
	return planOf(feature.Name, manifests, world)
}

func described(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, apply.Describe(object))
	}
	return names
}
