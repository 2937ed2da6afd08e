package takeover

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// mayTake checks the rights of a takeover before anything is written.
func (h *handover) mayTake(ctx context.Context) error {
	objects := append(h.policies(), openkruise.RecordOf(h.feature()))
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	return errors.Join(
		h.cluster.Check(ctx, append(objects, h.manifests...), "create", "patch"),
		h.mayEdit(ctx),
		h.cluster.Has(ctx, apply.Right{
			Resource:  accounts,
			Namespace: h.old.Namespace,
			Verbs:     []string{"impersonate"},
		}),
	)
}

// mayUndo checks the rights of the way back.
func (h *handover) mayUndo(ctx context.Context, record Record) error {
	back, err := h.storedOtherwise(ctx, record)
	if err != nil {
		return err
	}
	own := openkruise.RecordOf(h.feature())
	return errors.Join(
		h.replacement.MayRemove(ctx, h.cluster),
		h.cluster.Check(ctx, append(h.policies(), own), "delete"), h.cluster.Check(ctx, []*unstructured.Unstructured{own}, "create", "patch"),
		h.mayEdit(ctx), h.mayStore(ctx, back),
	)
}

// mayFinish checks the rights of the end, for the features with objects that are stored again and for all that OpenKruise
// leaves.
func mayFinish(ctx context.Context, mine, all []*handover) error {
	var faults []error
	for _, h := range all {
		workloads, err := h.old.Workloads(ctx, h.cluster)
		if err != nil {
			return err
		}
		own := openkruise.RecordOf(h.feature())
		gone := slices.Concat(policy(h.feature(), h.old.User(), h.kinds), openkruise.Configurations(), workloads,
			[]*unstructured.Unstructured{h.old.WebhookService(), own})
		faults = append(faults, h.cluster.Check(ctx, gone, "delete"),
			h.cluster.Check(ctx, []*unstructured.Unstructured{own}, "create", "patch"), h.cluster.Check(ctx, h.crds(), "update"))
	}
	for _, h := range mine {
		targets, err := h.storedAnew(ctx)
		if err != nil {
			return err
		}
		faults = append(faults, h.mayStore(ctx, targets))
	}
	return errors.Join(faults...)
}

// mayEdit checks the rights for the objects that belong to OpenKruise.
func (h *handover) mayEdit(ctx context.Context) error {
	update := []string{"update"}
	return errors.Join(
		h.cluster.Check(ctx, append(openkruise.Configurations(), h.crds()...), update...),
		h.cluster.Has(ctx, apply.Right{
			Resource:  deploymentResource(),
			Namespace: h.old.Namespace,
			Verbs:     update,
		}),
	)
}

// mayStore checks the rights for migrations.
func (h *handover) mayStore(ctx context.Context, targets []storage) error {
	var all []apply.Right
	for _, target := range targets {
		rights, err := h.migration(target).Rights()
		if err != nil {
			return err
		}
		all = append(all, rights...)
	}
	return h.cluster.Has(ctx, all...)
}

// policies are all that keep others from the feature.
func (h *handover) policies() []*unstructured.Unstructured {
	return policies(h.feature(), h.old.User(), h.kinds)
}
