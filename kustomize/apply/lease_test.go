package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

func TestTheLeaseOfAManagerFollowsItsFlags(t *testing.T) {
	with := func(arguments ...any) *unstructured.Unstructured {
		manager := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"args": arguments}},
		}}}}}
		manager.SetNamespace("flotilla-system")
		manager.SetName("jobs-manager")
		return manager
	}
	assert.Equal(t, "jobs-manager", apply.LeaseOf(with("--v=2")).GetName())
	assert.Equal(t, "mine", apply.LeaseOf(with("--leader-election-id=mine")).GetName())
	assert.Equal(t, "other", apply.LeaseOf(with("--leader-election-namespace=other")).GetNamespace())
	assert.Nil(t, apply.LeaseOf(with("--enable-leader-election=false")))
	assert.Nil(t, apply.LeaseOf(nil))
}
