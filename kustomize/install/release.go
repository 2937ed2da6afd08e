package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// These are annotations that Helm writes into the objects of a release.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// release is a release of Helm.
type release struct{ namespace, name string }

// releaseOf returns the release that an object of ours is part of, as Helm has noted it there.
func releaseOf(object *unstructured.Unstructured) (of release, found bool) {
	labels := object.GetLabels()
	annotations := object.GetAnnotations()
	if labels["app.kubernetes.io/part-of"] != "flotilla" || labels["app.kubernetes.io/managed-by"] != "Helm" {
		return release{}, false
	}
	of = release{namespace: annotations[releaseNamespace], name: annotations[releaseName]}
	return of, of.name != ""
}

// refuseReleased returns an error when one of the live objects of a feature is part of a release of Helm: it and this command would
// write the same objects, each in its turn. A CRD outlives its release, so that the record of the release decides.
func refuseReleased(ctx context.Context, cluster *apply.Cluster, feature string, live []*unstructured.Unstructured, hint string) error {
	for _, object := range live {
		of, found := releaseOf(object)
		if !found || !recorded(ctx, cluster, of) {
			continue
		}
		return fmt.Errorf("%s is managed by Helm: %s is part of release %s in namespace %s. Upgrade or remove it with Helm: "+
			"helm uninstall %[3]s --namespace %[4]s leaves CRDs, objects and pods%s", feature, apply.Describe(object), of.name, of.namespace, hint)
	}
	return nil
}

// refuseReleased returns an error when Helm manages objects that would be deleted.
func (u *uninstaller) refuseReleased(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) error {
	objects, err := removable(ctx, cluster, feature)
	if err != nil {
		return err
	}
	live, err := liveOf(ctx, cluster, objects)
	if err != nil {
		return err
	}
	if !u.crds {
		live = slices.DeleteFunc(live, func(o *unstructured.Unstructured) bool { return apply.StageOf(o) == apply.CRDs })
	}
	return refuseReleased(ctx, cluster, feature.Name, live, "")
}

// recorded reports whether a release has a record. One that cannot be looked for may have one.
func recorded(ctx context.Context, cluster *apply.Cluster, of release) bool {
	for _, resource := range []string{"secrets", "configmaps"} {
		records, err := cluster.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: resource}, of.namespace, "owner=helm,name="+of.name)
		if err != nil || len(records) > 0 {
			return true
		}
	}
	return false
}
