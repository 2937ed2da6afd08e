package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Diff returns how an object would change, one line for each field: "+" added, "-" removed, "~" changed. Fields that the
// server maintains are left out.
func Diff(live, next *unstructured.Unstructured) []string {
	return changes("", cleaned(live), cleaned(next))
}

func cleaned(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy().Object
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(copied, "metadata", field)
	}
	delete(copied, "status")
	return copied
}

func changes(path string, from, to any) []string {
	if before, ok := from.(map[string]any); ok {
		if after, ok := to.(map[string]any); ok {
			return changesOfMap(path, before, after)
		}
	}
	if before, ok := from.([]any); ok {
		if after, ok := to.([]any); ok && len(before) == len(after) {
			var lines []string
			for i := range before {
				lines = append(lines, changes(fmt.Sprintf("%s[%d]", path, i), before[i], after[i])...)
			}
			return lines
		}
	}
	before, after := text(from), text(to)
	if before == after {
		return nil
	}
	return []string{fmt.Sprintf("~ %s: %s -> %s", path, short(before), short(after))}
}

func changesOfMap(path string, from, to map[string]any) []string {
	keys := map[string]bool{}
	for key := range from {
		keys[key] = true
	}
	for key := range to {
		keys[key] = true
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name := key
		if path != "" {
			name = path + "." + key
		}
		before, had := from[key]
		after, has := to[key]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("+ %s: %s", name, short(text(after))))
		case !has:
			lines = append(lines, fmt.Sprintf("- %s: %s", name, short(text(before))))
		default:
			lines = append(lines, changes(name, before, after)...)
		}
	}
	return lines
}

// text returns a value in one line.
func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}

// short returns the part of a text that is shown to users.
func short(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
