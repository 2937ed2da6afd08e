package takeover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

type takeover struct {
	streams genericiooptions.IOStreams
	report  *cli.Report
	flags   genericclioptions.RESTClientGetter
	old     openkruise.Manager
	// namesManager means that the user has named the old manager.
	namesManager bool
	settings     install.Settings
	// back gives features back, final ends their takeover.
	dryRun, back, final bool
	wait                bool
	timeout, settle     time.Duration
	clock               clock.Clock
}

func (t *takeover) run(ctx context.Context, features []catalog.Feature) error {
	cluster, err := apply.Connect(t.flags)
	if err != nil {
		return err
	}
	if _, err := cluster.Version(); err != nil {
		return err
	}
	if t.final {
		return t.finish(ctx, cluster, features)
	}
	var all []*handover
	for _, feature := range features {
		h, err := t.handover(ctx, cluster, feature)
		if err == nil && !t.back && !t.dryRun {
			err = h.mayTake(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", feature.Name, err) // before the first one has begun
		}
		all = append(all, h)
	}
	changes := 0
	for _, h := range all {
		n, err := t.one(ctx, cluster, h)
		if err != nil {
			return fmt.Errorf("%s: %w", h.feature(), err)
		}
		changes += n
	}
	return verdict(changes)
}

// verdict is the answer no when pods have changed. That does not end a run: on a cluster in use some pod always changes.
func verdict(changes int) error {
	if changes == 0 {
		return nil
	}
	return cli.NoErrorf("pods changed while the command ran (%d changes, listed above); check who changed them", changes)
}

// one shows, takes over or gives back a feature, and returns how many changes of pods there were.
func (t *takeover) one(ctx context.Context, cluster *apply.Cluster, h *handover) (changes int, err error) {
	if removing(h.now) && !t.back {
		return 0, fmt.Errorf("%s. %s", h.now.Trouble(), h.now.Help())
	}
	if !t.back {
		plan, err := t.plan(ctx, h)
		if err != nil {
			return 0, err
		}
		plan.print(t.streams.Out)
		plan.report(t.report, t.dryRun)
	}
	if t.dryRun {
		return 0, nil
	}
	was, err := t.podsNow(ctx, cluster)
	if err != nil {
		return 0, err
	}
	way := openkruise.Handover{Feature: h.feature(), From: h.old}.Undo()
	if t.back {
		if err := h.undo(ctx); err != nil {
			return 0, err
		}
		return t.verify(ctx, cluster, was)
	}
	if err := h.run(ctx); err != nil && !h.recorded {
		return 0, fmt.Errorf("%w; OpenKruise keeps the feature; run the command again", err)
	} else if err != nil {
		return 0, fmt.Errorf("%w; run the command again, or go back with: %s", err, way)
	}
	fmt.Fprintf(t.streams.Out, "%s: to go back while OpenKruise is installed: %s\n", h.feature(), way)
	return t.verify(ctx, cluster, was)
}

// handover returns the handover of a feature. An earlier run has written down the manager that it takes the feature from,
// and the settings.
func (t *takeover) handover(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) (*handover, error) {
	old := t.old
	record, err := cluster.Get(ctx, openkruise.RecordOf(feature.Name))
	if err != nil {
		return nil, err
	}
	var now openkruise.Handover
	if record != nil {
		now = openkruise.Read(record)
	}
	if record != nil && !t.namesManager {
		old = now.From
	}
	before, err := apply.ConnectAs(t.flags, old.User())
	if err != nil {
		return nil, err
	}
	replacement := install.Replacement{
		Feature:  feature,
		Settings: t.settings,
		Wait:     t.wait,
		Timeout:  t.timeout,
		Out:      t.streams.Out,
		Report:   t.report,
	}
	if err := replacement.Recall(ctx, cluster); err != nil {
		return nil, err
	}
	if !t.back {
		if err := openkruise.WholeCluster(feature.Name, replacement.Settings.OnlyNamespace, record != nil); err != nil {
			return nil, err
		}
	}
	if err := replacement.Settings.FromSomewhere(); err != nil && !t.back && !t.final && !t.dryRun {
		return nil, err
	}
	manifests, err := install.Manifests(feature, replacement.Settings)
	if err != nil {
		return nil, err
	}
	return &handover{
		cluster:     cluster,
		before:      before,
		old:         old,
		now:         now,
		recorded:    record != nil,
		kinds:       kindsOf(manifests),
		manifests:   manifests,
		timeout:     t.timeout,
		settle:      t.settle,
		replacement: replacement,
		clock:       t.clock,
		out:         t.streams.Out,
		report:      t.report,
		progress:    apply.NewProgress(t.streams.Out),
	}, nil
}

// sight is how pods were at a time.
type sight struct {
	pods map[string]podState
	at   time.Time
}

// verify compares pods with their state from before, after the operator has worked for a while, and returns how many changes
// there were.
func (t *takeover) verify(ctx context.Context, cluster *apply.Cluster, was sight) (changes int, err error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-t.clock.After(t.settle):
	}
	is, err := t.podsNow(ctx, cluster)
	if err != nil {
		return 0, err
	}
	lines := changed(was.pods, is.pods, nil)
	if len(lines) == 0 {
		fmt.Fprintf(t.streams.Out, "%d pods: no changes and no restarts\n", len(was.pods))
		return 0, nil
	}
	events, err := eventsSince(ctx, cluster, was.at)
	if err != nil {
		return 0, err
	}
	lines = changed(was.pods, is.pods, events)
	for _, line := range lines {
		t.report.Warn("pod " + line)
	}
	fmt.Fprintf(t.streams.Out, "%d pods; these changed while the command ran:\n  %s\n", len(was.pods), strings.Join(lines, "\n  "))
	return len(lines), nil
}

// podsNow returns the states of all pods of OpenKruise's kinds.
func (t *takeover) podsNow(ctx context.Context, cluster *apply.Cluster) (sight, error) {
	now := t.clock.Now()
	pods, err := cluster.List(ctx, podResource(), "", "")
	if err != nil {
		return sight{}, err
	}
	states, err := remember(pods)
	return sight{pods: states, at: now}, err
}

// eventsSince returns the events from a time on. They only explain: without the right to read them there are none.
func eventsSince(ctx context.Context, cluster *apply.Cluster, since time.Time) ([]unstructured.Unstructured, error) {
	events, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "events"}, "", "")
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return slices.DeleteFunc(events, func(event unstructured.Unstructured) bool {
		return timeOf(event).Before(since.Truncate(time.Second))
	}), err
}

func (t *takeover) plan(ctx context.Context, h *handover) (Plan, error) {
	world, err := look(ctx, h.cluster, h.old, h.replacement.Feature, h.manifests)
	if err != nil {
		return Plan{}, err
	}
	if len(world.Configurations) == 0 && len(world.Managers) == 0 {
		return Plan{}, fmt.Errorf("OpenKruise was not found: %s do not exist, and no Deployment in namespace %s has ServiceAccount %s. To install without a takeover: flotilla install %s",
			strings.Join(described(openkruise.Configurations()), ", "), h.old.Namespace, h.old.Account, h.feature())
	}
	return planOf(h.feature(), h.manifests, world)
}

func described(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, apply.Describe(object))
	}
	return names
}
