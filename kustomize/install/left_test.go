package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ordered returns a pod with two containers behind barriers. state is the state of the second one; nil for none.
func ordered(name string, state map[string]any) unstructured.Unstructured {
	container := func(name, key, configMap string) any {
		return map[string]any{"name": name, "env": []any{map[string]any{"name": barrierVariable, "valueFrom": map[string]any{
			"configMapKeyRef": map[string]any{"name": configMap, "key": key},
		}}}}
	}
	statuses := []any{map[string]any{"name": "first", "state": map[string]any{"running": map[string]any{}}}}
	if state != nil {
		state["name"] = "second"
		statuses = append(statuses, state)
	}
	pod := unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"containers": []any{container("first", "p_1", name+"-barrier"), container("second", "p_0", name+"-barrier")}},
		"status": map[string]any{"containerStatuses": statuses},
	}}
	pod.SetNamespace("team")
	pod.SetName(name)
	return pod
}

func TestPodsBehindBarriers(t *testing.T) {
	waits := func() map[string]any {
		return map[string]any{"state": map[string]any{"waiting": map[string]any{"reason": "CreateContainerConfigError"}}}
	}
	again := waits()
	again["lastState"] = map[string]any{"terminated": map[string]any{}}
	plain := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app"}}}}}
	open := func(pod string, keys map[string]any) unstructured.Unstructured {
		configMap := unstructured.Unstructured{Object: map[string]any{"data": keys}}
		configMap.SetNamespace("team")
		configMap.SetName(pod + "-barrier")
		return configMap
	}

	names := behindBarriers([]unstructured.Unstructured{
		ordered("waits", waits()), ordered("unseen", nil), ordered("opens", waits()), ordered("restarts", again),
		ordered("runs", map[string]any{"state": map[string]any{"running": map[string]any{}}}), plain,
	}, []unstructured.Unstructured{
		open("waits", map[string]any{"p_1": "true"}), open("opens", map[string]any{"p_1": "true", "p_0": "true"}),
	})

	assert.Equal(t, []string{"team/waits", "team/unseen"}, names)
}

// The command knows the names as the operators write them.
func TestNamesOfWhatIsLeft(t *testing.T) {
	for name, file := range map[string]string{
		barrierVariable: "core/contract/pods.go", barrierLabel: "daemon/internal/podmarks/barrier.go",
		copyLabel: "jobs/api/v1beta1/keys.go", copies: "daemon/config/secrets/namespace.yaml",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		require.NoError(t, err)
		assert.Contains(t, string(text), name, file)
	}
}
