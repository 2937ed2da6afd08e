package workloads

import (
	"testing"

	"github.com/stretchr/testify/assert"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The kinds are a ConfigMap's, and workloads of these kinds are any JSON.
func FuzzWorkload(f *testing.F) {
	f.Add(`{"workloads":[{"Group":"example.io","kind":"GameServerSet","replicasPath":"spec.replicas","subResources":[{"Kind":"A"}]}]}`,
		[]byte(`{"spec":{"replicas":3,"reserveOrdinals":[1,"3-5"],"ordinals":{"start":2},"groups":[{"replicas":2}]}}`), "spec.groups.0.replicas")
	f.Add(`{"workloads":[null]}`, []byte(`{"spec":{"reserveOrdinals":[null,{},"9-1","-","99999999999999999999"],"ordinals":{"start":-1}}}`), "spec..x")
	f.Fuzz(func(t *testing.T, config string, object []byte, path string) {
		_, _ = ParseAllowed(config)
		_, _ = ParseVersioned([]string{config})
		var workload map[string]any
		if utiljson.Unmarshal(object, &workload) != nil {
			return
		}
		ordinalsOf(workload)
		if sum, err := Sum(workload, path, path); err == nil {
			assert.GreaterOrEqual(t, sum, int32(0))
		}
	})
}
