package takeover

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// allowancesKey is the key of the ConfigMap that allows further kinds of workloads to be spread.
const allowancesKey = "WorkloadSpread_Watch_Custom_Workload_WhiteList"

// allowances returns the ConfigMap that allows further kinds: each manager reads the one of its own namespace.
func allowances(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": "kruise-configuration"},
	}}
}

// copyAllowed copies the kinds that the old manager was allowed, unless the new one has a list already.
func (h *handover) copyAllowed(ctx context.Context) error {
	before, err := h.cluster.Get(ctx, allowances(h.old.Namespace))
	if err != nil || before == nil {
		return err
	}
	ours := allowances(install.Namespace)
	now, err := h.cluster.Get(ctx, ours)
	if err != nil {
		return err
	}
	kinds := allowed(before)
	if kinds == "" || now != nil && allowed(now) != "" {
		return nil
	}
	ours.Object["data"] = map[string]any{allowancesKey: kinds}
	_, err = h.cluster.Apply(ctx, ours, apply.Options{})
	return err
}

func allowed(configMap *unstructured.Unstructured) string {
	kinds, _, _ := unstructured.NestedString(configMap.Object, "data", allowancesKey)
	return kinds
}
