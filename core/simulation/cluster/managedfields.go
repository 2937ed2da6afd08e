package cluster

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// manageResources notes in metadata.managedFields of a pod who has resized its containers last, in the way of the server:
// each quantity belongs to one manager, and a manager of nothing has no entry. Other fields have no managers here.
func (w *World) manageResources(manager, subresource string, old, n action.Object) {
	before, isPod := old.(*corev1.Pod)
	after, _ := n.(*corev1.Pod)
	if !isPod || subresource != "resize" || len(before.Spec.Containers) != len(after.Spec.Containers) || len(before.Spec.InitContainers) != len(after.Spec.InitContainers) {
		return // the rules of pods refuse other containers
	}
	changed := changedQuantities(before, after)
	if len(changed) == 0 {
		return
	}
	now, mine := w.Stamp(), managedTree{}
	var entries []metav1.ManagedFieldsEntry
	for _, e := range before.ManagedFields {
		fields := managedTree{}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			w.Violate("managedFields of pod %s: %v", before.Name, err)
		}
		for _, path := range changed {
			fields.remove(path)
		}
		switch {
		case e.Manager == manager:
			mine = fields
		case len(fields) > 0:
			entries = append(entries, managedEntry(e.Manager, *e.Time, fields))
		}
	}
	for _, path := range changed {
		mine.insert(path)
	}
	after.ManagedFields = append(entries, managedEntry(manager, now, mine))
}

func managedEntry(manager string, at metav1.Time, fields managedTree) metav1.ManagedFieldsEntry {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("write managed fields: %v", err)) // maps of text always become JSON
	}
	return metav1.ManagedFieldsEntry{
		Manager:     manager,
		Operation:   metav1.ManagedFieldsOperationUpdate,
		APIVersion:  "v1",
		Time:        &at,
		FieldsType:  "FieldsV1",
		FieldsV1:    metav1.NewFieldsV1(string(text)),
		Subresource: "resize",
	}
}

// changedQuantities are the paths of all quantities of containers that differ, as managedFields name them.
func changedQuantities(before, after *corev1.Pod) [][]string {
	var paths [][]string
	add := func(list string, old, now []corev1.Container) {
		for i := range now {
			at := []string{"f:spec", list, fmt.Sprintf(`k:{"name":%q}`, now[i].Name), "f:resources"}
			paths = append(paths, changedIn(slices.Concat(at, []string{"f:limits"}), old[i].Resources.Limits, now[i].Resources.Limits)...)
			paths = append(paths, changedIn(slices.Concat(at, []string{"f:requests"}), old[i].Resources.Requests, now[i].Resources.Requests)...)
		}
	}
	add("f:initContainers", before.Spec.InitContainers, after.Spec.InitContainers)
	add("f:containers", before.Spec.Containers, after.Spec.Containers)
	return paths
}

func changedIn(at []string, old, now corev1.ResourceList) [][]string {
	var paths [][]string
	for name, q := range now {
		if before, had := old[name]; !had || before.Cmp(q) != 0 {
			paths = append(paths, slices.Concat(at, []string{"f:" + string(name)}))
		}
	}
	return paths
}

// managedTree is the JSON of a FieldsV1.
type managedTree map[string]managedTree

func (t managedTree) insert(path []string) {
	for _, step := range path {
		if t[step] == nil {
			t[step] = managedTree{}
		}
		t = t[step]
	}
}

// remove drops the path, and what is empty without it.
func (t managedTree) remove(path []string) {
	child, ok := t[path[0]]
	if !ok {
		return
	}
	if len(path) > 1 {
		child.remove(path[1:])
	}
	if len(child) == 0 {
		delete(t, path[0])
	}
}
