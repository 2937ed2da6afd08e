package takeover

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// allowancesKey is the key of the ConfigMap that allows further kinds of workloads to be spread.
const allowancesKey = "WorkloadSpread_Watch_Custom_Workload_WhiteList"

// allowances returns the ConfigMap that allows further kinds: each manager reads the one of its own namespace.
func allowances(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": "kruise-configuration"},
	}}
}

// copyAllowed copies the kinds that the old manager is allowed, unless the new one has a list of a user.
// A copy of an earlier takeover may be out of date.
func (h *handover) copyAllowed(ctx context.Context) error {
	before, err := h.cluster.Get(ctx, allowances(h.old.Namespace))
	if err != nil {
		return err
	}
	now, err := h.cluster.Get(ctx, allowances(install.Namespace))
	if err != nil {
		return err
	}
	kinds := allowed(before)
	switch {
	case kinds == allowed(now), allowed(now) != "" && !copied(now):
		return nil
	case kinds == "":
		return h.dropCopy(ctx, now)
	}
	ours := allowances(install.Namespace)
	ours.Object["data"] = map[string]any{allowancesKey: kinds}
	return h.apply(ctx, ours)
}

// forgetAllowed removes the copy: the old manager reads its own list, and the next takeover copies that one. A list that
// a user has changed stays.
func (h *handover) forgetAllowed(ctx context.Context, _ Record) error {
	now, err := h.cluster.Get(ctx, allowances(install.Namespace))
	if err != nil || now == nil {
		return err
	}
	if copied(now) {
		return h.dropCopy(ctx, now)
	}
	if allowed(now) != "" {
		h.report.Leave(apply.Describe(now))
		fmt.Fprintf(h.out, "%s stays, because its list %s was changed after the takeover; the next takeover uses it\n", apply.Describe(now), allowancesKey)
	}
	return nil
}

// dropCopy removes the list from a ConfigMap, and the ConfigMap if there is nothing else in it.
func (h *handover) dropCopy(ctx context.Context, now *unstructured.Unstructured) error {
	data, _, _ := unstructured.NestedMap(now.Object, "data")
	binary, _, _ := unstructured.NestedMap(now.Object, "binaryData")
	if len(data)+len(binary) > 1 {
		// Of the data, the copy is all that this field manager has applied.
		return h.apply(ctx, allowances(install.Namespace))
	}
	return h.delete(ctx, now)
}

// copied reports whether a list is as a takeover has written it: it has a single field manager.
func copied(configMap *unstructured.Unstructured) bool {
	ours := false
	for _, entry := range configMap.GetManagedFields() {
		if !setsKey(entry, allowancesKey) {
			continue
		}
		if entry.Manager != apply.Manager || entry.Operation != metav1.ManagedFieldsOperationApply {
			return false
		}
		ours = true
	}
	return ours
}

// setsKey reports whether a field manager has set a key of the data.
func setsKey(entry metav1.ManagedFieldsEntry, key string) bool {
	var fields struct {
		Data map[string]any `json:"f:data"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, has := fields.Data["f:"+key]
	return has
}

func allowed(configMap *unstructured.Unstructured) string {
	if configMap == nil {
		return ""
	}
	kinds, _, _ := unstructured.NestedString(configMap.Object, "data", allowancesKey)
	return kinds
}
