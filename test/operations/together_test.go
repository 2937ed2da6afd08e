package operations

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/test/managers"
)

// All features work beside each other, and those that run also beside those that are dead.
func TestTheDeadHoldNobodyUp(t *testing.T) {
	need(t)
	f := install(t, "", all(t)...)
	tell(t, all(t)...)
	f.stop(t, workloads(t)...)
	tell(t, helpers(t)...)
	f.start(t, workloads(t)...)
	f.kill(t, helpers(t)...)
	tell(t, workloads(t)...)
}

// Who deletes operators deletes and changes no pod of theirs, and new operators go on with the sets as they are.
func TestPodsOutliveTheirOperators(t *testing.T) {
	need(t)
	f := install(t, "", all(t)...)
	running := givenRunning(t)
	f.stop(t, all(t)...)
	for _, feature := range all(t) {
		require.NoError(t, f[feature].Uninstall(t.Context(), func(o unstructured.Unstructured) bool { return !managers.IsDefinition(o) }))
	}
	running.areUntouched(t)

	install(t, "", all(t)...)
	tell(t, all(t)...)
	running.areUntouched(t)
	running.update(t)
}

// running is what runs in one namespace for each feature, all of it settled.
type running struct {
	sets []*unstructured.Unstructured
	pods map[string][]string // by namespace
}

// givenRunning creates workloads of each feature and waits until they are settled.
func givenRunning(t *testing.T) running {
	t.Helper()
	r := running{pods: map[string][]string{}}
	for _, feature := range workloads(t) {
		r.sets = append(r.sets, given(t, world.Namespace(t), feature))
	}
	for _, feature := range []string{"budget", "spread"} {
		namespace := world.Namespace(t)
		o := given(t, namespace, feature)
		field(t, o, o.GetGeneration(), "observedGeneration")
		r.pods[namespace] = nil
	}
	for namespace := range r.pods {
		field(t, given(t, namespace, "deployment"), int64(4), "availableReplicas")
	}
	for _, set := range r.sets {
		isReady(t, set)
		r.pods[set.GetNamespace()] = nil
	}
	tell(t, helpers(t)...) // meanwhile marks and costs are written
	for namespace := range r.pods {
		r.pods[namespace] = versionsOf(t, namespace)
	}
	return r
}

// versionsOf returns the pods of the namespace with their resourceVersions, which every write changes.
func versionsOf(t *testing.T, namespace string) []string {
	t.Helper()
	var all []string
	for _, o := range world.Pods(t, namespace) {
		all = append(all, fmt.Sprintf("%s %s %s", o.Name, o.UID, o.ResourceVersion))
	}
	return all
}

// areUntouched requires that no pod was written, created or deleted.
func (r running) areUntouched(t *testing.T) {
	t.Helper()
	for namespace, before := range r.pods {
		assert.Equal(t, before, versionsOf(t, namespace))
	}
}

// update changes the image of each set, in place.
func (r running) update(t *testing.T) {
	t.Helper()
	for _, set := range r.sets {
		updatesInPlace(t, set)
	}
}
