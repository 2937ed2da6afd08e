package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var (
	row    = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (.*?) \\| ")
	linked = regexp.MustCompile(`\]\(#([a-z0-9]+)\)`)
)

// reference is a page of docs/api: the types of fields by section, in lower case, and name.
type reference map[string]map[string]string

func readReference(t *testing.T, file string) reference {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := reference{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		fields := map[string]string{}
		for _, match := range row.FindAllStringSubmatch(body, -1) {
			fields[match[1]] = match[2]
		}
		found[strings.ToLower(title)] = fields
	}
	return found
}

// The reference of the API has each field that the CRDs have, no other one, and its type.
func TestTheReferenceHasTheFieldsOfTheCRDs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "*", "config", "crd", "*.yaml"))
	require.NoError(t, err)
	kinds := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(text, &crd), file)
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		kinds++
		feature := strings.Split(filepath.ToSlash(strings.TrimPrefix(file, root)), "/")[1]
		page := readReference(t, filepath.Join(root, "docs", "api", feature+".md"))
		for _, version := range crd.Spec.Versions {
			if version.Name == "v1beta1" {
				page.compare(t, crd.Spec.Names.Kind, strings.ToLower(crd.Spec.Names.Kind), version.Schema.OpenAPIV3Schema)
			}
		}
	}
	assert.Greater(t, kinds, 10)
}

// compare holds a section to a schema, and so the sections that its types lead to. What leads to the reference of Kubernetes is
// left to it.
func (r reference) compare(t *testing.T, path, section string, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	fields, ok := r[section]
	if !ok || len(schema.Properties) == 0 {
		return
	}
	for name, property := range schema.Properties {
		at := path + "." + name
		said, ok := fields[name]
		if !ok {
			assert.Contains(t, []string{"apiVersion", "kind", "metadata"}, name, "%s is not on the page", at)
			continue
		}
		assert.True(t, agree(said, &property), "%s is said to be %q, and the CRD has %s %s", at, said, property.Type, property.Format)
		if match := linked.FindStringSubmatch(said); match != nil {
			r.compare(t, at, match[1], members(&property))
		}
	}
	for name := range fields {
		assert.Contains(t, schema.Properties, name, "%s.%s is on the page and not in the CRD", path, name)
	}
}

// agree reports whether the words for a type are of the type of the schema.
func agree(said string, property *apiextensionsv1.JSONSchemaProps) bool {
	switch {
	case property.XIntOrString:
		return strings.HasPrefix(said, "number or ")
	case property.Type == "array":
		return strings.HasPrefix(said, "list of ") && (property.Items == nil || agree(strings.TrimPrefix(said, "list of "), property.Items.Schema))
	case property.AdditionalProperties != nil:
		return strings.HasPrefix(said, "map of ")
	case property.Type == "object" || property.XPreserveUnknownFields != nil:
		return strings.HasPrefix(said, "[") || said == "object"
	case property.Type == "string":
		return strings.HasPrefix(said, "string") || said == "time" || said == "duration" || strings.HasPrefix(said, "[")
	default:
		return said == property.Type
	}
}

// members returns the schema of what a list or a map has, and any other schema itself.
func members(property *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if property.Items != nil && property.Items.Schema != nil {
		return members(property.Items.Schema)
	}
	if property.AdditionalProperties != nil && property.AdditionalProperties.Schema != nil {
		return members(property.AdditionalProperties.Schema)
	}
	return property
}
