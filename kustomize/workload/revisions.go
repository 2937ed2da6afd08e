package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// causeAnnotation is where kubectl and its users note why a template was changed.
const causeAnnotation = "kubernetes.io/change-cause"

// Revision is one version of the pod template that the history keeps.
type Revision struct {
	// Number grows with time; a template that comes back takes the highest one.
	Number int64
	Name   string
	// Template is the pod template, without the fields that the operator's libraries have added.
	Template map[string]any
	// Note is the revision's own annotation kubernetes.io/change-cause, which DaemonSets write.
	Note string
}

// Images are the images of the template's containers, in order.
func (r *Revision) Images() []string {
	var images []string
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(r.Template, "spec", list)
		for _, container := range containers {
			if c, ok := container.(map[string]any); ok {
				image, _, _ := unstructured.NestedString(c, "image")
				images = append(images, image)
			}
		}
	}
	return images
}

// Cause is why the template was changed: the note of the template, or else of the revision.
func (r *Revision) Cause() string {
	cause, _, _ := unstructured.NestedString(r.Template, "metadata", "annotations", causeAnnotation)
	return cmp.Or(cause, r.Note)
}

// Revisions lists the history of a workload, from old to new.
func (c *Client) Revisions(ctx context.Context, s *Set) ([]*Revision, error) {
	list, err := c.Core.AppsV1().ControllerRevisions(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", s, err)
	}
	var revisions []*Revision
	for i := range list.Items {
		if !s.Owns(&list.Items[i]) {
			continue
		}
		revision, err := readRevision(&list.Items[i])
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, revision)
	}
	slices.SortFunc(revisions, func(a, b *Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	return revisions, nil
}

// readRevision reads the data of a ControllerRevision, a patch that replaces spec.template. The field that marks it as a
// patch is left out.
func readRevision(r *appsv1.ControllerRevision) (*Revision, error) {
	var data map[string]any
	if err := utiljson.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("read revision %s: %w", r.Name, err)
	}
	template, found, err := unstructured.NestedMap(data, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("read revision %s: it has no pod template", r.Name)
	}
	delete(template, "$patch")
	return &Revision{
		Number:   r.Revision,
		Name:     r.Name,
		Template: Plain(template),
		Note:     r.Annotations[causeAnnotation],
	}, nil
}

// Plain returns a copy of a pod template without the fields that libraries write without being asked: creation times, and
// requirements of resources that require nothing.
func Plain(template map[string]any) map[string]any {
	plain := runtime.DeepCopyJSON(template)
	dropCreationTime(plain)
	spec, _ := plain["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, container := range containers {
			dropNoResources(container)
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, volume := range volumes {
		v, _ := volume.(map[string]any)
		ephemeral, _ := v["ephemeral"].(map[string]any)
		if claim, ok := ephemeral["volumeClaimTemplate"].(map[string]any); ok {
			dropCreationTime(claim)
			dropNoResources(claim["spec"])
		}
	}
	return plain
}

func dropNoResources(object any) {
	fields, _ := object.(map[string]any)
	if resources, ok := fields["resources"].(map[string]any); ok && len(resources) == 0 {
		delete(fields, "resources")
	}
}

func dropCreationTime(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["creationTimestamp"] != nil {
		return
	}
	delete(metadata, "creationTimestamp")
	if metadata != nil && len(metadata) == 0 {
		delete(object, "metadata")
	}
}

// SameTemplate reports whether two templates mean the same.
func SameTemplate(a, b map[string]any) bool {
	x, errX := json.Marshal(Plain(a))
	y, errY := json.Marshal(Plain(b))
	return errX == nil && errY == nil && string(x) == string(y)
}
