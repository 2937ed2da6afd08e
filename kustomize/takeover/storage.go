package takeover

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// storage is a live CRD with objects that are to be stored in a version.
type storage struct {
	crd     *unstructured.Unstructured
	version string
}

// stands reports whether all objects are stored so.
func (s storage) stands() bool {
	return apply.StorageVersion(s.crd) == s.version && slices.Equal(apply.StoredVersions(s.crd), []string{s.version})
}

// storedAnew returns the CRDs with objects that are not stored in the version of Flotilla's CRDs.
func (h *handover) storedAnew(ctx context.Context) ([]storage, error) {
	return h.storages(ctx, func(crd, _ *unstructured.Unstructured) string { return apply.StorageVersion(crd) })
}

// storedOtherwise returns the CRDs with objects that are stored in a version that OpenKruise's do not have.
func (h *handover) storedOtherwise(ctx context.Context, record Record) ([]storage, error) {
	return h.storages(ctx, func(crd, live *unstructured.Unstructured) string {
		spec, recorded := record.Definitions[crd.GetName()]
		old := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		if !recorded || !slices.ContainsFunc(apply.StoredVersions(live), func(version string) bool { return !apply.HasVersion(old, version) }) {
			return ""
		}
		return apply.StorageVersion(old)
	})
}

// storages returns the live CRDs with objects that are to be stored in another version. The empty version leaves a CRD as it
// is.
func (h *handover) storages(ctx context.Context, version func(crd, live *unstructured.Unstructured) string) ([]storage, error) {
	var all []storage
	for _, crd := range h.crds() {
		live, err := h.cluster.Get(ctx, crd)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		if target := (storage{crd: live, version: version(crd, live)}); target.version != "" && !target.stands() {
			all = append(all, target)
		}
	}
	return all, nil
}

// store makes all objects of CRDs be stored in other versions.
func (h *handover) store(ctx context.Context, targets []storage) error {
	for _, target := range targets {
		if err := h.edit(ctx, target.crd, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if !apply.HasVersion(live, target.version) {
				return nil, fmt.Errorf("%s has no version %s", apply.Describe(live), target.version)
			}
			return apply.Store(live, target.version), nil
		}); err != nil {
			return err
		}
		progress := apply.NewProgress(h.out)
		progress.Begin(fmt.Sprintf("%s: %s stored as %s", h.feature(), target.crd.GetName(), target.version))
		migration := h.migration(target)
		migration.Tell = progress.Tell
		result, err := migration.Run(ctx)
		if err != nil {
			return err
		}
		progress.End(result)
	}
	return nil
}

func (h *handover) migration(target storage) apply.Migration {
	return apply.Migration{
		Cluster: h.cluster,
		CRD:     apply.Store(target.crd, target.version),
		Settle:  h.settle,
		Timeout: h.timeout,
		Clock:   h.clock,
	}
}

// ownStorage makes objects be stored in the version of Flotilla's CRDs.
func (h *handover) ownStorage(ctx context.Context) error {
	targets, err := h.storedAnew(ctx)
	if err != nil {
		return err
	}
	return h.store(ctx, targets)
}

// storeAsBefore makes objects be stored as OpenKruise's CRDs do, where they are stored in a version that these do not have. The
// operator still converts them.
func (h *handover) storeAsBefore(ctx context.Context, record Record) error {
	targets, err := h.storedOtherwise(ctx, record)
	if err != nil {
		return err
	}
	return h.store(ctx, targets)
}
