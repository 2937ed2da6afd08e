package workload

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Operators write revisions with what their libraries add: that is no difference, and nobody's template gets it.
func TestRevisionsHaveWhatUsersHaveWritten(t *testing.T) {
	read := func(text string) map[string]any {
		var template map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &template))
		return template
	}
	const template = `{"metadata":{"labels":{"app":"web"}},"spec":{"initContainers":[{"name":"first"}],
		"containers":[{"name":"main","image":"app:1"},{"name":"side","resources":{"limits":{"cpu":"1"}}}],
		"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"]}}}}]}}`
	revision, err := readRevision(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-a"}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},
			"spec":{"initContainers":[{"name":"first","resources":{}}],
			"containers":[{"name":"main","image":"app:1","resources":{}},{"name":"side","resources":{"limits":{"cpu":"1"}}}],
			"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null},"spec":{"accessModes":["ReadWriteOnce"],"resources":{}}}}}]}}}}`)},
	})
	require.NoError(t, err)

	assert.Equal(t, read(template), revision.Template)
	written := read(template)
	written["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["resources"] = map[string]any{}
	assert.True(t, SameTemplate(revision.Template, written), "users may have written the same")
	assert.Contains(t, written["spec"].(map[string]any)["containers"].([]any)[0], "resources", "and keep it")
	assert.False(t, SameTemplate(revision.Template, read(`{"spec":{"containers":[{"name":"main","image":"app:2"}]}}`)))
}

// A DaemonSet's revision has the note of the object, and a template its own.
func TestTheCauseIsThatOfTheTemplateOrTheRevision(t *testing.T) {
	noted := `{"metadata": {"annotations": {"kubernetes.io/change-cause": "of the template"}}}`
	for want, r := range map[string]*appsv1.ControllerRevision{
		"of the template": revisionOf(noted, "of the revision"),
		"of the revision": revisionOf(`{}`, "of the revision"),
		"":                revisionOf(`{}`, ""),
	} {
		got, err := readRevision(r)
		require.NoError(t, err)
		assert.Equal(t, want, got.Cause())
	}
}

func revisionOf(template, cause string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{causeAnnotation: cause}},
		Data:       runtime.RawExtension{Raw: []byte(`{"spec": {"template": ` + template + `}}`)},
	}
}
