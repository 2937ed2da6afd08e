package charts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestMergedManifestsSayWhatOptionsChange(t *testing.T) {
	for name, c := range map[string]struct {
		base string
		with []string // variants by the conditions $a, $b
		want string
	}{
		"nothing": {"a: 1", []string{"a: 1"}, "a: 1"},
		"a scalar": {
			"a: 1", []string{"a: 2"},
			"{{- if $a }}\na: 2\n{{- else }}\na: 1\n{{- end }}",
		},
		"a scalar by two options, of which the last counts": {
			"a: 1", []string{"a: 2", "a: 3"},
			"{{- if $b }}\na: 3\n{{- else if $a }}\na: 2\n{{- else }}\na: 1\n{{- end }}",
		},
		"a field that an option adds":    {"a: 1", []string{"{a: 1, b: 2}"}, "a: 1\n{{- if $a }}\nb: 2\n{{- end }}"},
		"a field that an option removes": {"{a: 1, b: 2}", []string{"a: 1"}, "a: 1\n{{- if not $a }}\nb: 2\n{{- end }}"},
		"neighbors with one condition": {
			"a: 1", []string{"{a: 1, b: 2, c: 3}"},
			"a: 1\n{{- if $a }}\nb: 2\nc: 3\n{{- end }}",
		},
		"a list that two options make": {
			"a: 1", []string{"{a: 1, list: [x]}", "{a: 1, list: [z]}"},
			"a: 1\n{{- if or $a $b }}\nlist:\n{{- if $a }}\n- x\n{{- end }}\n{{- if $b }}\n- z\n{{- end }}\n{{- end }}",
		},
		"items before and after those of all": {
			"list: [m]", []string{"list: [a, m]", "list: [m, z]"},
			"list:\n{{- if $a }}\n- a\n{{- end }}\n- m\n{{- if $b }}\n- z\n{{- end }}",
		},
		"an item with a name that an option changes": {
			"list: [{name: x, v: 1}, {name: z}]", []string{"list: [{name: x, v: 2}, {name: z}]"},
			"list:\n- name: x\n  {{- if $a }}\n  v: 2\n  {{- else }}\n  v: 1\n  {{- end }}\n- name: z",
		},
		"an item that begins with a condition": {
			"list: [{mountPath: /x, z: 1}]", []string{"list: [{mountPath: /x, a: 1, z: 1}]"},
			"list:\n-\n  {{- if $a }}\n  a: 1\n  {{- end }}\n  mountPath: /x\n  z: 1",
		},
		"what Helm would take for an action": {"a: '{{ .Values }}'", nil, "a: '{{ \"{{\" }} .Values }}'"},
	} {
		t.Run(name, func(t *testing.T) {
			var variants []variant
			for i, text := range c.with {
				variants = append(variants, variant{[]string{"$a", "$b"}[i], parse(t, text)})
			}
			lines, err := merge(parse(t, c.base), variants).lines()
			require.NoError(t, err)
			assert.Equal(t, c.want, strings.Join(lines, "\n"))
		})
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var value map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value))
	return value
}
