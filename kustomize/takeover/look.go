package takeover

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

func podResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func deploymentResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// look reads the objects that planOf needs.
func look(ctx context.Context, cluster *apply.Cluster, old openkruise.Manager, feature catalog.Feature, manifests []*unstructured.Unstructured) (World, error) {
	world := World{
		Account:  old.User(),
		CRDs:     map[string]*unstructured.Unstructured{},
		Policies: map[string]*unstructured.Unstructured{},
		Objects:  map[string]int{},
		Pods:     map[string]int{},
	}
	var err error
	if world.Configurations, err = existing(ctx, cluster, openkruise.Configurations()); err != nil {
		return world, err
	}
	if world.Managers, err = old.Deployments(ctx, cluster); err != nil {
		return world, err
	}
	found, err := existing(ctx, cluster, policies(feature.Name, old.User(), kindsOf(manifests)))
	if err != nil {
		return world, err
	}
	for _, live := range found {
		world.Policies[live.GetName()] = live
	}
	pods, err := cluster.List(ctx, podResource(), "", "")
	if err != nil {
		return world, err
	}
	if nodeImages, err := cluster.Get(ctx, definitionOf(nodeImagesCRD)); err != nil {
		return world, err
	} else if nodeImages != nil {
		world.CRDs[nodeImagesCRD] = nodeImages
	}
	for _, object := range manifests {
		if object.GetKind() != crdKind {
			continue
		}
		if err := world.lookAtKind(ctx, cluster, object, manifests, pods); err != nil {
			return world, err
		}
	}
	return world, nil
}

// lookAtKind reads the CRD of a kind and its objects, if it exists, and counts its pods.
func (w *World) lookAtKind(ctx context.Context, cluster *apply.Cluster, crd *unstructured.Unstructured, manifests []*unstructured.Unstructured, pods []unstructured.Unstructured) error {
	live, err := cluster.Get(ctx, crd)
	if err != nil || live == nil {
		return err
	}
	w.CRDs[live.GetName()] = live
	found, err := cluster.List(ctx, install.ResourceOf(live), "", "")
	if err != nil {
		return err
	}
	w.Objects[live.GetName()] = len(found)
	if live.GetName() == budgetCRD {
		if w.Idle, err = idle(ctx, found, manifests, cluster); err != nil {
			return err
		}
	}
	for i := range pods {
		if owns(kindsOf([]*unstructured.Unstructured{crd}), &pods[i]) {
			w.Pods[live.GetName()]++
		}
	}
	return nil
}

// existing returns the objects that exist, as they are stored.
func existing(ctx context.Context, cluster *apply.Cluster, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		live, err := cluster.Get(ctx, object)
		if err != nil {
			return nil, err
		}
		if live != nil {
			found = append(found, live)
		}
	}
	return found, nil
}
