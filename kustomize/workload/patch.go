package workload

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Patch is an edit of a workload.
type Patch struct {
	Type types.PatchType
	Body []byte
}

// Pause returns the edit that stops the update of pods.
func (s *Set) Pause() (Patch, error) { return s.merge(true, s.pausedField()) }

// Resume returns the edit that lets the update continue: the field is removed, and so is as most manifests have it.
func (s *Set) Resume() (Patch, error) { return s.merge(nil, s.pausedField()) }

func (s *Set) pausedField() []string {
	return append(append([]string{}, s.Kind.rollingUpdate(s.Version)...), "paused")
}

// Annotate returns the edit that sets an annotation of the pod template.
func (s *Set) Annotate(name, value string) (Patch, error) {
	return s.merge(value, []string{"spec", "template", "metadata", "annotations", name})
}

// SetTemplate returns the edit that replaces the whole pod template. It is refused if the workload has changed since it
// was read.
func (s *Set) SetTemplate(template map[string]any) (Patch, error) {
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": s.text("metadata", "resourceVersion")},
		{"op": "replace", "path": "/spec/template", "value": template},
	})
	return Patch{Type: types.JSONPatchType, Body: body}, err
}

func (s *Set) merge(value any, path []string) (Patch, error) {
	body := map[string]any{}
	if err := unstructured.SetNestedField(body, value, path...); err != nil {
		return Patch{}, err
	}
	text, err := json.Marshal(body)
	return Patch{Type: types.MergePatchType, Body: text}, err
}
