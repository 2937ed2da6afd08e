package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// rounds limits how often objects are deleted that another client creates again.
const rounds = 3

// warn prints the objects that would be lost with the CRDs, and deletes nothing.
func (u *uninstaller) warn(ctx context.Context, cluster *apply.Cluster, features []catalog.Feature) error {
	for _, feature := range features {
		objects, err := removable(ctx, cluster, feature)
		if err != nil {
			return err
		}
		for _, crd := range ofStage(objects, apply.CRDs) {
			resource := ResourceOf(crd)
			found, err := cluster.List(ctx, resource, "", "")
			if err != nil {
				return err
			}
			u.warnOf(fmt.Sprintf("%s: %s would be deleted", resource.GroupResource(), withPods(len(found))))
		}
	}
	return nil
}

// unprotect removes the objects that a takeover has left, and waits until the API server knows that the CRDs may be deleted.
func (u *uninstaller) unprotect(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, feature string, crds []*unstructured.Unstructured) error {
	n, err := u.removeStage(ctx, cluster, progress, feature, "takeover", openkruise.Leftovers(feature), true)
	if err != nil || n == 0 || u.dryRun {
		return err
	}
	return apply.Await(ctx, u.timeout, progress.Tell, func(ctx context.Context) (bool, string, error) {
		for _, crd := range crds {
			if err := cluster.TryDelete(ctx, crd); err != nil {
				return false, apply.Describe(crd) + " cannot be deleted yet: " + err.Error(), nil //nolint:nilerr // what it waits for
			}
		}
		return true, "", nil
	})
}

// removeObjects deletes the objects of CRDs, each after its pods, and waits until they are gone. The CRDs stay until then:
// when the API server serves a kind no longer, the garbage collector cannot tell whether an owner of this kind is gone, and
// keeps its pods forever. Objects of the cluster own no pods, and their operator creates them again: they go with their CRD.
func (u *uninstaller) removeObjects(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, feature string, crds []*unstructured.Unstructured) error {
	for range rounds {
		objects, err := objectsOf(ctx, cluster, crds)
		if err != nil || u.dryRun || len(objects) == 0 {
			return err
		}
		if err := u.removeRound(ctx, cluster, progress, feature, objects); err != nil {
			return err
		}
	}
	objects, err := objectsOf(ctx, cluster, crds)
	if err != nil || len(objects) == 0 {
		return err
	}
	return fmt.Errorf("%s created again after the deletion, such as %s: stop the client that creates them, and run the command again",
		apply.Count(len(objects), "object was", "objects were"), apply.Describe(objects[0]))
}

func (u *uninstaller) removeRound(
	ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, feature string, objects []*unstructured.Unstructured,
) (err error) {
	count := withPods(len(objects)) + " deleted"
	defer func() { u.report.Step(feature, "remove objects", count, err) }()
	progress.Begin(feature + " objects")
	for _, object := range objects {
		if _, err := cluster.DeleteAfterDependents(ctx, object); err != nil {
			u.report.Object(feature, cli.Refused, object, err.Error())
			return err
		}
	}
	if err := apply.Await(ctx, u.timeout, progress.Tell, ended(cluster, objects)); err != nil {
		return err
	}
	progress.End(count)
	return nil
}

// objectsOf returns the objects of CRDs that are in namespaces.
func objectsOf(ctx context.Context, cluster *apply.Cluster, crds []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, crd := range crds {
		list, err := cluster.List(ctx, ResourceOf(crd), "", "")
		if err != nil {
			return nil, err
		}
		for i := range list {
			if list[i].GetNamespace() != "" {
				found = append(found, &list[i])
			}
		}
	}
	return found, nil
}

// ended checks that none of the objects is there. An object of the same name that was created since is another one.
func ended(cluster *apply.Cluster, objects []*unstructured.Unstructured) apply.Check {
	left := slices.Clone(objects)
	return func(ctx context.Context) (bool, string, error) {
		for len(left) > 0 {
			live, err := cluster.Get(ctx, left[0])
			if err != nil {
				return false, "", err
			}
			if live != nil && live.GetUID() == left[0].GetUID() {
				return false, fmt.Sprintf("%s still exists: its deletion waits for its pods or its finalizers; %s", apply.Describe(live),
					apply.Count(len(left), "object is left", "objects are left")), nil
			}
			left = left[1:]
		}
		return true, "", nil
	}
}

// withPods counts objects that go with their pods.
func withPods(objects int) string {
	return apply.Count(objects, "object and its pods", "objects and their pods")
}
