package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// The steps of the end of a takeover. From the second on nothing can be given back.
const (
	ownStorage     = "store objects in Flotilla's version"
	removeWebhooks = "remove OpenKruise's webhooks"
	removeManager  = "remove OpenKruise's manager and node agent"
	freeCRDs       = "remove the guard against OpenKruise from the CRDs"
	removePolicy   = "remove the policy against its ServiceAccount"
)

// removing reports whether OpenKruise is being removed, or has been.
func removing(now openkruise.Handover) bool {
	return now.Direction == openkruise.Final && !now.Ended() && now.Step != ownStorage
}

// removalBegun reports whether OpenKruise is being removed, of which all features are told, one after the other.
func removalBegun(now map[string]openkruise.Handover) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(now)), removing)
}

// finish ends the takeovers of features, all of them without any.
func (t *takeover) finish(ctx context.Context, cluster *apply.Cluster, features []catalog.Feature) error {
	now, err := openkruise.Handovers(ctx, cluster)
	if err != nil {
		return err
	}
	chosen, err := ending(now, features)
	if err != nil {
		return err
	}
	left, err := left(ctx, cluster)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("these objects of OpenKruise would have no controller; take over their kinds or delete them first: %s", strings.Join(left, ", "))
	}
	all, err := t.handoversOf(ctx, cluster, slices.Sorted(maps.Keys(now)))
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(h *handover) bool { return !slices.Contains(chosen, h.feature()) })
	waiting := slices.DeleteFunc(slices.Collect(maps.Keys(now)), func(name string) bool {
		return slices.Contains(chosen, name) || now[name].Direction == openkruise.Final
	})
	slices.Sort(waiting)
	if t.dryRun {
		return t.foretell(ctx, mine, all, waiting)
	}
	if err := mayFinish(ctx, mine, all); err != nil {
		return err
	}
	pods, err := t.podsNow(ctx, cluster)
	if err != nil {
		return err
	}
	if err := ownStorageOf(ctx, mine, now); err != nil {
		return err
	}
	if len(waiting) > 0 {
		t.report.Leave("OpenKruise, until the takeover of " + strings.Join(waiting, ", ") + " is finished")
		fmt.Fprintf(t.streams.Out, "OpenKruise stays until the takeover of %s is finished, too: flotilla takeover --finish\n", strings.Join(waiting, ", "))
		return t.answer(ctx, cluster, pods)
	}
	if err := without(ctx, all); err != nil {
		return fmt.Errorf("%w; run the command again", err)
	}
	fmt.Fprintln(t.streams.Out, "the manager, node agent and webhooks of OpenKruise are deleted; all CRDs and objects stay. If a tool such as Helm manages OpenKruise, remove it there, too")
	fmt.Fprintln(t.streams.Out, "to install the node agent of Flotilla: flotilla install daemon")
	return t.answer(ctx, cluster, pods)
}

// handoversOf returns the handovers of features by their names.
func (t *takeover) handoversOf(ctx context.Context, cluster *apply.Cluster, names []string) ([]*handover, error) {
	var all []*handover
	for _, name := range names {
		features, err := catalog.Select(name)
		if err != nil {
			return nil, err
		}
		h, err := t.handover(ctx, cluster, features[0])
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// ownStorageOf makes objects be stored in Flotilla's version, unless an earlier run has got further.
func ownStorageOf(ctx context.Context, mine []*handover, now map[string]openkruise.Handover) error {
	for _, h := range mine {
		if removing(now[h.feature()]) {
			continue
		}
		if err := h.do(ctx, openkruise.Final, []step{{ownStorage, h.ownStorage}}); err != nil {
			return fmt.Errorf("%s: %w; run the command again, or go back with: %s", h.feature(), err, now[h.feature()].Undo())
		}
		if err := h.note(ctx, openkruise.Final, ""); err != nil {
			return fmt.Errorf("%s: %w; run the command again", h.feature(), err)
		}
	}
	return nil
}

func (t *takeover) answer(ctx context.Context, cluster *apply.Cluster, pods sight) error {
	changes, err := t.verify(ctx, cluster, pods)
	return errors.Join(err, verdict(changes))
}

// ending returns the features with a takeover that is to be ended.
func ending(now map[string]openkruise.Handover, features []catalog.Feature) ([]string, error) {
	chosen := slices.Sorted(maps.Keys(now))
	if len(features) > 0 {
		chosen = nil
		for _, feature := range features {
			// The records go one after the other: a run that was cut off there has ended some takeovers.
			if _, there := now[feature.Name]; there || !removalBegun(now) {
				chosen = append(chosen, feature.Name)
			}
		}
	}
	if len(now) == 0 && len(features) == 0 {
		return nil, errors.New("no takeover from OpenKruise was found, or all of them are finished")
	}
	for _, name := range chosen {
		handover, there := now[name]
		if !there {
			return nil, fmt.Errorf("no takeover of %s from OpenKruise was found, or it is finished", name)
		}
		if trouble := handover.Trouble(); trouble != "" && handover.Direction != openkruise.Final {
			return nil, fmt.Errorf("%s: %s. %s", name, trouble, handover.Help())
		}
	}
	return chosen, nil
}

// without removes OpenKruise, and then the objects that kept it away from the kinds. The records go last: as long as one is
// there, the command can be repeated.
func without(ctx context.Context, all []*handover) error {
	for _, s := range []struct {
		name string
		do   func(*handover, context.Context) error
	}{
		{removeWebhooks, (*handover).removeOldWebhooks},
		{removeManager, (*handover).removeOldManager},
		{freeCRDs, (*handover).freeCRDs},
		{removePolicy, (*handover).removePolicy},
	} {
		for _, h := range all {
			if err := h.note(ctx, openkruise.Final, s.name); err != nil {
				return err
			}
		}
		for _, h := range all {
			if err := h.doStep(ctx, step{s.name, func(ctx context.Context) error { return s.do(h, ctx) }}); err != nil {
				return err
			}
		}
	}
	for _, h := range all {
		if err := h.delete(ctx, openkruise.RecordOf(h.feature())); err != nil {
			return err
		}
	}
	return nil
}

func (h *handover) removeOldWebhooks(ctx context.Context) error {
	for _, configuration := range openkruise.Configurations() {
		if err := h.delete(ctx, configuration); err != nil {
			return err
		}
	}
	return nil
}

// removeOldManager waits for the pods, too: one that still runs must not find that nothing keeps it away.
func (h *handover) removeOldManager(ctx context.Context) error {
	workloads, err := h.old.Workloads(ctx, h.cluster)
	if err != nil {
		return err
	}
	for _, object := range append(workloads, h.old.WebhookService()) {
		if err := h.delete(ctx, object); err != nil {
			return err
		}
	}
	return apply.Await(ctx, h.timeout, h.progress.Tell, func(ctx context.Context) (bool, string, error) {
		left, err := h.old.Pods(ctx, h.cluster)
		return len(left) == 0, "pods of OpenKruise still run: " + strings.Join(left, ", "), err
	})
}

func (h *handover) freeCRDs(ctx context.Context) error {
	for _, crd := range h.crds() {
		if err := h.edit(ctx, crd, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return apply.Unguard(live), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// removePolicy keeps the policy by which the CRDs cannot be deleted: tools that remove OpenKruise may delete its CRDs.
func (h *handover) removePolicy(ctx context.Context) error {
	for _, object := range policy(h.feature(), h.old.User(), h.kinds) {
		if err := h.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// left returns the kinds that OpenKruise looks after: kinds of its groups that are not Flotilla's and have objects.
func left(ctx context.Context, cluster *apply.Cluster) ([]string, error) {
	definitions := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	crds, err := cluster.List(ctx, definitions, "", "")
	if err != nil {
		return nil, err
	}
	var lines []string
	for i := range crds {
		if !openkruise.LooksAfter(&crds[i]) {
			continue
		}
		group, _, _ := unstructured.NestedString(crds[i].Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(crds[i].Object, "spec", "names", "plural")
		objects, err := cluster.List(ctx, schema.GroupVersionResource{Group: group, Version: apply.StorageVersion(&crds[i]), Resource: plural}, "", "")
		if err != nil {
			return nil, err
		}
		if len(objects) > 0 {
			lines = append(lines, fmt.Sprintf("%s (%d)", crds[i].GetName(), len(objects)))
		}
	}
	return lines, nil
}

// foretell prints the changes that would be made, and makes none.
func (t *takeover) foretell(ctx context.Context, mine, all []*handover, waiting []string) error {
	out := t.streams.Out
	for _, h := range mine {
		for _, crd := range h.crds() {
			live, err := h.cluster.Get(ctx, crd)
			if err != nil {
				return err
			}
			if live != nil {
				text := fmt.Sprintf("%s: objects would be stored as %s; they are stored as %s", apply.Describe(live),
					apply.StorageVersion(crd), strings.Join(apply.StoredVersions(live), ", "))
				t.report.Plan(h.feature(), text)
				fmt.Fprintln(out, text)
			}
		}
	}
	if len(waiting) > 0 {
		t.report.Leave("OpenKruise, until the takeover of " + strings.Join(waiting, ", ") + " is finished")
		fmt.Fprintf(out, "OpenKruise would stay until the takeover of %s is finished, too\n", strings.Join(waiting, ", "))
		return nil
	}
	workloads, err := all[0].old.Workloads(ctx, all[0].cluster)
	if err != nil {
		return err
	}
	gone, err := existing(ctx, all[0].cluster, append(openkruise.Configurations(), all[0].old.WebhookService()))
	if err != nil {
		return err
	}
	for _, object := range append(gone, workloads...) {
		t.report.Object("", cli.Removed, object, "")
		fmt.Fprintf(out, "%s: would be deleted\n", apply.Describe(object))
	}
	for _, h := range all {
		for _, object := range policy(h.feature(), h.old.User(), h.kinds) {
			t.report.Object(h.feature(), cli.Removed, object, "")
		}
		fmt.Fprintf(out, "ValidatingAdmissionPolicy %s: would be deleted\n", openkruise.RecordName(h.feature()))
	}
	return nil
}
