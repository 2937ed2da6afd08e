package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServerTestFaults(t *testing.T) {
	const suite = "package web\nimport \"x/core/testing/testenv\"\nvar env testenv.Environment\nfunc TestMain(m *testing.M) { env.Run(m) }\n"
	const helper = "package web\ntype app struct{ name string }\nfunc (a *app) start() { env.Start(a.name) }\nfunc given() *app { return &app{} }\n"
	const needs, free = "package web\nfunc TestStart(t *testing.T) { given().start() }\n", "package web\nfunc TestText(t *testing.T) { pod.env(config{env: 1}) }\n"
	shows := func(file, test string) []string {
		return []string{"web/web/" + file + ": " + test + " needs an API server, which files show that are called *_integration_test.go or suite_test.go"}
	}
	cases := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"a suite", map[string]string{"suite_test.go": suite}, nil},
		{"a suite of another name", map[string]string{"operator_test.go": suite}, shows("operator_test.go", "TestMain")},
		{"a test by a helper, with its name", map[string]string{"suite_test.go": suite, "given_test.go": helper, "start_integration_test.go": needs}, nil},
		{"a test by a helper, without", map[string]string{"suite_test.go": suite, "given_test.go": helper, "start_test.go": needs}, shows("start_test.go", "TestStart")},
		{"a benchmark", map[string]string{"suite_test.go": suite, "b_test.go": "package web\nfunc BenchmarkStart(b *testing.B) { env.Need(b) }\n"}, shows("b_test.go", "BenchmarkStart")},
		{"a field and a method of the name", map[string]string{"suite_test.go": suite, "text_test.go": free}, nil},
		{"a package of its own", map[string]string{"suite_test.go": suite, "text_test.go": "package web_test\nfunc TestText(t *testing.T) { env() }\n"}, nil},
		{
			"a name that promises a server", map[string]string{"suite_test.go": suite, "text_integration_test.go": free},
			[]string{"web/web/text_integration_test.go: no test needs an API server, and the name shows one"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			changed := map[string]string{}
			for name, content := range c.files {
				changed["web/web/"+name] = content
			}
			root := repository(changed)
			workspace, err := Load(root)
			require.NoError(t, err)
			faults, err := ServerTestFaults(root, workspace.Modules[1])
			require.NoError(t, err)
			assert.Equal(t, c.want, faults)
		})
	}
}
