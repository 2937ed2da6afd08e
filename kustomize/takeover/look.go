package takeover

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

func podResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func deploymentResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// configurations are the webhook configurations of OpenKruise's manager, which has these names in its code.
func configurations() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		labelled("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration", nil),
		labelled("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration", nil),
	}
}

// manager is the old manager: a ServiceAccount.
type manager struct {
	namespace, account string
}

// user is the user that the manager is.
func (m manager) user() string { return "system:serviceaccount:" + m.namespace + ":" + m.account }

// look reads what planOf needs.
func look(ctx context.Context, cluster *apply.Cluster, old manager, feature catalog.Feature, manifests []*unstructured.Unstructured) (World, error) {
	world := World{
		Account: old.user(),
		CRDs:    map[string]*unstructured.Unstructured{}, Policies: map[string]*unstructured.Unstructured{},
		Objects: map[string]int{}, Pods: map[string]int{},
	}
	var err error
	if world.Configurations, err = existing(ctx, cluster, configurations()); err != nil {
		return world, err
	}
	if world.Managers, err = managers(ctx, cluster, old); err != nil {
		return world, err
	}
	policies, err := existing(ctx, cluster, policy(feature.Name, old.user(), kindsOf(manifests)))
	if err != nil {
		return world, err
	}
	for _, live := range policies {
		world.Policies[live.GetName()] = live
	}
	pods, err := cluster.List(ctx, podResource(), "", "")
	if err != nil {
		return world, err
	}
	for _, object := range manifests {
		if object.GetKind() != crdKind {
			continue
		}
		live, err := cluster.Get(ctx, object)
		if err != nil {
			return world, err
		}
		if live == nil {
			continue
		}
		world.CRDs[live.GetName()] = live
		found, err := cluster.List(ctx, install.ResourceOf(live), "", "")
		if err != nil {
			return world, err
		}
		world.Objects[live.GetName()] = len(found)
		for _, pod := range pods {
			if owns(kindsOf([]*unstructured.Unstructured{object}), &pod) {
				world.Pods[live.GetName()]++
			}
		}
	}
	return world, nil
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

// managers returns the Deployments that run as the old manager.
func managers(ctx context.Context, cluster *apply.Cluster, old manager) ([]*unstructured.Unstructured, error) {
	deployments, err := cluster.List(ctx, deploymentResource(), old.namespace, "")
	if err != nil {
		return nil, fmt.Errorf("look for OpenKruise's manager: %w", err)
	}
	var found []*unstructured.Unstructured
	for i := range deployments {
		account, _, _ := unstructured.NestedString(deployments[i].Object, "spec", "template", "spec", "serviceAccountName")
		if account == old.account {
			found = append(found, &deployments[i])
		}
	}
	return found, nil
}
