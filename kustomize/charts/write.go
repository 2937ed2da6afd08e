package charts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// lines returns the text of a node: a template of YAML. Each level is indented by two spaces.
func (n *node) lines() ([]string, error) {
	switch {
	case n.fields != nil:
		return block(n.keys(), func(key string) (string, []string, error) {
			lines, err := n.fields[key].entry(key)
			return n.fields[key].when, lines, err
		})
	case n.items != nil:
		return block(n.items, func(item *node) (string, []string, error) {
			lines, err := item.item()
			return item.when, lines, err
		})
	}
	return plain(n.value)
}

// keys returns the keys of a map in order, after the name of an item.
func (n *node) keys() []string {
	keys := slices.Sorted(maps.Keys(n.fields))
	if name := n.fields["name"]; name != nil && name.when == "" && name.value != nil {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "name" })
		keys = slices.Insert(keys, 0, "name")
	}
	return keys
}

// block returns the lines of parts. Neighbors with one condition stand below it together.
func block[T any](parts []T, write func(T) (when string, lines []string, err error)) ([]string, error) {
	var all, pending []string
	condition := ""
	for _, part := range parts {
		when, lines, err := write(part)
		if err != nil {
			return nil, err
		}
		if when != condition {
			all = append(all, conditional(condition, pending)...)
			pending = nil
			condition = when
		}
		pending = append(pending, lines...)
	}
	return append(all, conditional(condition, pending)...), nil
}

// entry returns the lines of a field of a map, without its condition.
func (n *node) entry(key string) ([]string, error) {
	if n.fields == nil && n.items == nil {
		return n.scalar(func(value any) any { return map[string]any{key: value} })
	}
	body, err := n.lines()
	if err != nil {
		return nil, err
	}
	if n.fields != nil {
		body = indented("  ", body)
	}
	return append([]string{key + ":"}, body...), nil
}

// item returns the lines of an item of a list, without its condition.
func (n *node) item() ([]string, error) {
	if n.fields == nil && n.items == nil {
		return n.scalar(func(value any) any { return []any{value} })
	}
	body, err := n.lines()
	if err != nil {
		return nil, err
	}
	body = indented("  ", body)
	if strings.HasPrefix(strings.TrimSpace(body[0]), "{{") {
		return append([]string{"-"}, body...), nil
	}
	body[0] = "- " + strings.TrimPrefix(body[0], "  ")
	return body, nil
}

// scalar returns the lines of a node without children; within puts a value into its place.
func (n *node) scalar(within func(any) any) ([]string, error) {
	switch {
	case n.raw != "":
		return strings.Split(n.raw, "\n"), nil
	case n.choice != nil:
		return chosen(n.choice, func(value any) ([]string, error) { return plain(within(value)) })
	}
	return plain(within(n.value))
}

// chosen returns the lines of the last alternative that holds.
func chosen(choice []alternative, write func(any) ([]string, error)) ([]string, error) {
	var lines []string
	for i, alternative := range slices.Backward(choice) {
		switch {
		case i == len(choice)-1:
			lines = append(lines, "{{- if "+outer(alternative.when)+" }}")
		case i > 0:
			lines = append(lines, "{{- else if "+outer(alternative.when)+" }}")
		default:
			lines = append(lines, "{{- else }}")
		}
		body, err := write(alternative.value)
		if err != nil {
			return nil, err
		}
		lines = append(lines, body...)
	}
	return append(lines, "{{- end }}"), nil
}

func conditional(condition string, lines []string) []string {
	if condition == "" {
		return lines
	}
	return slices.Concat([]string{"{{- if " + outer(condition) + " }}"}, lines, []string{"{{- end }}"})
}

// outer returns a condition without the parentheses around it.
func outer(condition string) string {
	if inner, has := strings.CutPrefix(condition, "("); has {
		return strings.TrimSuffix(inner, ")")
	}
	return condition
}

// plain returns the lines of a value that no option changes, with escapes of all that Helm would read as an action.
func plain(value any) ([]string, error) {
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write a value: %w", err)
	}
	escaped := strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`)
	return strings.Split(strings.TrimSuffix(escaped, "\n"), "\n"), nil
}

// indented puts a prefix before each line. Actions are indented with the lines around them.
func indented(prefix string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			line = prefix + line
		}
		all[i] = line
	}
	return all
}
