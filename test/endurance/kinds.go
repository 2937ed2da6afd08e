package endurance

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed objects
var manifests embed.FS

// Kind is the work with one kind of objects.
type Kind struct {
	// Name is the kind in lower case, and names the file of its objects.
	Name string
	// edits are merge patches of the first object, one of which is chosen at random. Kinds without edits end by themselves.
	edits []func(*rand.Rand) string
	// main is the place of the object that shows in its status when the work is done.
	main int
	done func(*unstructured.Unstructured) bool
}

// Kinds returns the kinds of work, at least one for each feature.
func Kinds() []Kind {
	workload := []func(*rand.Rand) string{replicas, image, arguments, annotation}
	return []Kind{
		{Name: "cloneset", edits: workload, done: isReady},
		{Name: "statefulset", edits: workload, done: isReady},
		{Name: "daemonset", edits: []func(*rand.Rand) string{nodes, image, arguments, annotation}, done: isReady},
		{Name: "spread", edits: workload, done: isAvailable},
		{Name: "budget", edits: workload, done: isAvailable},
		{Name: "advancedcronjob", done: has("lastScheduleTime")},
		{Name: "broadcastjob", done: has("completionTime")},
		{Name: "imagepulljob", done: has("completionTime")},
		{Name: "containerrecreaterequest", main: 1, done: has("completionTime")},
		{Name: "sidecarterminator", done: hasSucceeded},
	}
}

// objects returns new objects of the kind.
func (k Kind) objects() ([]*unstructured.Unstructured, error) {
	text, err := manifests.ReadFile("objects/" + k.Name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read the objects of %s: %w", k.Name, err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode the objects of %s: %w", k.Name, err)
		}
		all = append(all, o)
	}
}

// Random edits. Most replicas are few, so that many lives fit into an hour.
const mostReplicas, versions = 15, 1000

func replicas(r *rand.Rand) string {
	return fmt.Sprintf(`{"spec":{"replicas":%d}}`, r.IntN(mostReplicas+1))
}

func image(r *rand.Rand) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:v%d"}]}}}}`, r.IntN(versions))
}

func arguments(r *rand.Rand) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:v1","args":["%d"]}]}}}}`, r.IntN(versions))
}

func annotation(r *rand.Rand) string {
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"version":"%d"}}}}}`, r.IntN(versions))
}

func nodes(r *rand.Rand) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:"%d"}}}}}`, groupLabel, r.IntN(groups))
}

// isReady reports whether a set of ours has all its pods ready and updated.
func isReady(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return observed(o) && c["status"] == "True"
		}
	}
	return false
}

// isAvailable reports whether all pods of a Deployment are available and updated.
func isAvailable(o *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	for _, field := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
		if n, _, _ := unstructured.NestedInt64(o.Object, "status", field); n != wanted {
			return false
		}
	}
	return observed(o)
}

func observed(o *unstructured.Unstructured) bool {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation == o.GetGeneration()
}

// has reports whether the status has a time.
func has(time string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		text, _, _ := unstructured.NestedString(o.Object, "status", time)
		return text != ""
	}
}

func hasSucceeded(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return phase == "Succeeded"
}
