package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository returns a valid workspace of core, one feature and kustomize, with some of its files replaced.
func repository(changed map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, set := range []map[string]string{{
		"go.work":          "go 1.26.0\nuse (\n./core\n./web\n./kustomize\n)\n",
		"core/go.mod":      "module x/core\ngo 1.26.0\nrequire k8s.io/api v0.36.3\n",
		"web/go.mod":       "module x/web\ngo 1.26.0\nreplace x/core => ../core\nrequire (\nx/core v0.1.0\nk8s.io/api v0.36.3\n)\n",
		"kustomize/go.mod": "module x/kustomize\ngo 1.26.0\nreplace x/core => ../core\nreplace x/web => ../web\nrequire x/web v0.1.0\n",
	}, changed} {
		for name, content := range set {
			files[name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return files
}

func TestFaults(t *testing.T) {
	cases := []struct {
		name    string
		changed map[string]string
		want    []string
	}{
		{"a tree in order", nil, nil},
		{
			"another go directive",
			map[string]string{"core/go.mod": "module x/core\ngo 1.25.0\n"},
			[]string{`core: go directive is "1.25.0", go.work has "1.26.0"`},
		},
		{
			"no toolchain",
			map[string]string{"go.work": "go 1.26.0\ntoolchain go1.26.8\nuse ./core\n"},
			[]string{`core: toolchain is "", go.work has "go1.26.8"`},
		},
		{
			"another toolchain",
			map[string]string{
				"go.work":     "go 1.26.0\ntoolchain go1.26.8\nuse ./core\n",
				"core/go.mod": "module x/core\ngo 1.26.0\ntoolchain go1.26.5\n",
			},
			[]string{`core: toolchain is "go1.26.5", go.work has "go1.26.8"`},
		},
		{
			"another version of a shared library",
			map[string]string{"kustomize/go.mod": "module x/kustomize\ngo 1.26.0\nrequire k8s.io/api v0.35.0\n"},
			[]string{"kustomize: requires k8s.io/api v0.35.0, core requires v0.36.3"},
		},
		{
			"a sibling that is not built from the tree",
			map[string]string{"web/go.mod": "module x/web\ngo 1.26.0\nrequire x/core v0.1.0\n"},
			[]string{
				"web: requires its sibling core without a replace, add to web/go.mod: replace x/core => ../core",
			},
		},
		{
			"a sibling of a sibling that is not built from the tree",
			map[string]string{"kustomize/go.mod": "module x/kustomize\ngo 1.26.0\nreplace x/web => ../web\nrequire x/web v0.1.0\n"},
			[]string{"kustomize: requires its sibling core without a replace, add to kustomize/go.mod: replace x/core => ../core"},
		},
		{
			"a feature that the catalog lacks",
			map[string]string{"kustomize/go.mod": "module x/kustomize\ngo 1.26.0\n", "web/config/feature.yaml": "version: v0.1.0\n"},
			[]string{"kustomize: does not require feature web, add to kustomize/go.mod: require x/web v0.1.0, and replace x/web => ../web"},
		},
		{
			"a sibling from elsewhere",
			map[string]string{"web/go.mod": "module x/web\ngo 1.26.0\nreplace x/core => ../kustomize\nrequire x/core v0.1.0\n"},
			[]string{"web: replaces its sibling core by ../kustomize"},
		},
		{
			"a foreign module replaced",
			map[string]string{"web/go.mod": "module x/web\ngo 1.26.0\nreplace k8s.io/api => ../api\n"},
			[]string{"web: replaces k8s.io/api, which is no sibling"},
		},
		{
			"a feature that requires a feature",
			map[string]string{"web/go.mod": "module x/web\ngo 1.26.0\nreplace x/kustomize => ../kustomize\nrequire x/kustomize v0.1.0\n"},
			[]string{"web: may not require kustomize"},
		},
		{
			"a module of tests may require what it tests, and one of releases what it releases",
			map[string]string{
				"go.work": "go 1.26.0\nuse (\n./core\n./web\n./kustomize\n./kustomize/release\n./test/charts\n)\n",
				"kustomize/release/go.mod": "module x/kustomize/release\ngo 1.26.0\nreplace (\nx/kustomize => ../../kustomize\nx/web => ../../web\nx/core => ../../core\n)\n" +
					"require x/kustomize v0.1.0\n",
				"test/charts/go.mod": "module x/test/charts\ngo 1.26.0\nreplace (\nx/kustomize => ../../kustomize\nx/web => ../../web\nx/core => ../../core\n)\n" +
					"require x/kustomize v0.1.0\n",
			},
			nil,
		},
		{
			"core requires a feature",
			map[string]string{"core/go.mod": "module x/core\ngo 1.26.0\nreplace x/web => ../web\nrequire x/web v0.1.0\n"},
			[]string{"core: may not require web"},
		},
		{
			"API types that require core",
			map[string]string{
				"go.work":        "go 1.26.0\nuse (\n./core\n./web/api\n)\n",
				"web/api/go.mod": "module x/web/api\ngo 1.26.0\nreplace x/core => ../../core\nrequire x/core v0.1.0\n",
			},
			[]string{"web/api: may not require core"},
		},
		{
			"core and API types may require those of core",
			map[string]string{
				"go.work":         "go 1.26.0\nuse (\n./core\n./core/api\n./web/api\n)\n",
				"core/go.mod":     "module x/core\ngo 1.26.0\nreplace x/core/api => ./api\nrequire x/core/api v0.1.0\n",
				"core/api/go.mod": "module x/core/api\ngo 1.26.0\n",
				"web/api/go.mod":  "module x/web/api\ngo 1.26.0\nreplace x/core/api => ../../core/api\nrequire x/core/api v0.1.0\n",
			},
			nil,
		},
		{
			"a feature may require an API module",
			map[string]string{
				"go.work":           "go 1.26.0\nuse (\n./web\n./daemon/api\n)\n",
				"web/go.mod":        "module x/web\ngo 1.26.0\nreplace x/daemon/api => ../daemon/api\nrequire x/daemon/api v0.1.0\n",
				"daemon/api/go.mod": "module x/daemon/api\ngo 1.26.0\n",
			},
			nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			workspace, err := Load(repository(c.changed))
			require.NoError(t, err)
			assert.Equal(t, c.want, workspace.Faults())
		})
	}
}

func TestLoadNamesTheFileThatIsWrong(t *testing.T) {
	cases := []struct {
		name    string
		changed map[string]string
		want    string
	}{
		{"go.work is no workspace", map[string]string{"go.work": "{"}, "parse go.work"},
		{"a module is missing", map[string]string{"go.work": "go 1.26.0\nuse ./nowhere\n"}, "read nowhere/go.mod"},
		{"go.mod is broken", map[string]string{"core/go.mod": "{"}, "parse core/go.mod"},
		{"go.mod is empty", map[string]string{"core/go.mod": ""}, "there is no module line"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(repository(c.changed))
			assert.ErrorContains(t, err, c.want)
		})
	}
}
