package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// undo gives a feature back, unless it refuses to begin.
func (h *handover) undo(ctx context.Context) error {
	object := openkruise.RecordOf(h.feature())
	live, err := h.cluster.Get(ctx, object)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("%s not found: the feature was not taken over, or was given back", apply.Describe(object))
	}
	record, err := readRecord(live)
	if err != nil {
		return err
	}
	if err := errors.Join(h.wayBack(ctx), h.mayUndo(ctx, record)); err != nil {
		return err
	}
	if err := h.giveBack(ctx, record); err != nil {
		return fmt.Errorf("%w; run the command again", err)
	}
	return nil
}

// giveBack removes the operator, and returns the recorded parts to the old manager. The record goes last, so that all of it
// can be done again.
func (h *handover) giveBack(ctx context.Context, record Record) error {
	with := func(do func(context.Context, Record) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, record) }
	}
	steps := []step{
		{"store objects as before", with(h.storeAsBefore)},
		{"remove the operator", func(ctx context.Context) error { return h.replacement.Remove(ctx, h.cluster) }},
		{"restore the CRDs", with(h.restoreCRDs)},
		{"restore the webhooks", with(h.restoreWebhooks)},
		{"allow writes of the old manager", with(h.allow)},
		{"turn its feature gates on", with(h.turnOn)},
	}
	if h.feature() == "spread" {
		steps = slices.Insert(steps, 2, step{"remove the list of further kinds", with(h.forgetAllowed)})
	}
	if err := h.do(ctx, openkruise.Back, steps); err != nil {
		return err
	}
	return h.delete(ctx, openkruise.RecordOf(h.feature()))
}

func (h *handover) turnOn(ctx context.Context, record Record) error {
	var gates []gate
	for _, name := range record.Gates {
		gates = append(gates, gate{name: name})
	}
	return h.setGates(ctx, gates, true)
}

// wayBack refuses to begin if the feature would have no controller.
func (h *handover) wayBack(ctx context.Context) error {
	configurations, err := existing(ctx, h.cluster, openkruise.Configurations())
	if err != nil {
		return err
	}
	managers, err := h.old.Deployments(ctx, h.cluster)
	if err != nil {
		return err
	}
	now, err := openkruise.Handovers(ctx, h.cluster)
	if err != nil {
		return err
	}
	if len(managers)+len(configurations) > 0 && !removalBegun(now) {
		return nil
	}
	return fmt.Errorf("OpenKruise is removed, or its removal has begun: the kinds of %s would have no controller. To finish the takeover: %s", h.feature(), h.now.Finish())
}

func (h *handover) restoreCRDs(ctx context.Context, record Record) error {
	for _, crd := range h.crds() {
		spec, recorded := record.Definitions[crd.GetName()]
		if !recorded {
			continue
		}
		if err := h.edit(ctx, crd, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			next := live.DeepCopy()
			next.Object["spec"] = spec
			next.SetLabels(asBefore(live.GetLabels(), crd.GetLabels(), record.Labels[crd.GetName()]))
			if annotations, recorded := record.Annotations[crd.GetName()]; recorded {
				next.SetAnnotations(asBefore(live.GetAnnotations(), crd.GetAnnotations(), annotations))
			}
			return next, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// asBefore returns labels or annotations in which those that an install has written are as they were before it.
func asBefore(now, written, before map[string]string) map[string]string {
	texts := maps.Clone(now)
	for name := range written {
		delete(texts, name)
		if value, had := before[name]; had {
			texts[name] = value
		}
	}
	return texts
}

func (h *handover) restoreWebhooks(ctx context.Context, record Record) error {
	for _, configuration := range openkruise.Configurations() {
		removed := record.Webhooks[apply.Describe(configuration)]
		if err := h.edit(ctx, configuration, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return giveBack(live, removed)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (h *handover) allow(ctx context.Context, _ Record) error {
	for _, object := range h.policies() {
		if err := h.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
