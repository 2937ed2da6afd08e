package install

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

const (
	// namespaced is the component that restricts managers to one namespace. It comes last, since it changes the roles of
	// the others.
	namespaced = "namespaced"
	// onlyNamespace is the variable of managers that has the namespace.
	onlyNamespace = "ONLY_NAMESPACE"
)

// restrict adds the component and the ConfigMap that it reads the namespace from.
func restrict(kustomization *types.Kustomization, namespace string) {
	kustomization.Components = append(kustomization.Components, "../kustomize/components/"+namespaced)
	kustomization.ConfigMapGenerator = []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{
		Name:          "flotilla-" + namespaced,
		KvPairSources: types.KvPairSources{LiteralSources: []string{"namespace=" + namespace}},
		Options:       &types.GeneratorOptions{Annotations: map[string]string{"config.kubernetes.io/local-config": "true"}},
	}}}
}

// findNamespaces returns an error when a namespace that managers shall be restricted to is not there.
func findNamespaces(ctx context.Context, cluster *apply.Cluster, all []Settings) error {
	asked := map[string]bool{"": true}
	var faults []error
	for _, settings := range all {
		name := settings.OnlyNamespace
		if asked[name] {
			continue
		}
		asked[name] = true
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(name)
		live, err := cluster.Get(ctx, namespace)
		if err == nil && live == nil {
			err = fmt.Errorf("namespace %s not found; to create it: kubectl create namespace %s", name, name)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Present returns the settings of the installed objects of a feature, as far as they decide which objects there are.
// Settings that cannot be read are taken for none, except the namespace.
func Present(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) (Settings, error) {
	manager, err := cluster.Get(ctx, named("apps/v1", "Deployment", feature.Name+"-manager"))
	if err != nil || manager == nil {
		return Settings{}, err
	}
	earlier, _, err := Recall(feature, manager)
	if err != nil {
		return Settings{OnlyNamespace: restrictedTo(manager)}, nil //nolint:nilerr // install says what cannot be read
	}
	return earlier, nil
}

// restrictedTo returns the namespace that the manager of a Deployment is restricted to; empty for none.
func restrictedTo(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		variables, _, _ := unstructured.NestedSlice(fields, "env")
		for _, variable := range variables {
			if entry, _ := variable.(map[string]any); entry["name"] == onlyNamespace {
				value, _ := entry["value"].(string)
				return value
			}
		}
	}
	return ""
}
