package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// crd returns a CRD of one version whose property "template" has the given schema.
func crd(template string) []byte {
	const frame = `
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string, pattern: x, description: ours}
              template:
%s
`
	return fmt.Appendf(nil, frame, indent(template))
}

func indent(text string) string {
	return "                " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n                ")
}

func fitted(t *testing.T, template string, options Options) schema {
	t.Helper()
	out, err := Fit(crd(template), options)
	require.NoError(t, err)
	var document schema
	require.NoError(t, yaml.Unmarshal(out, &document))
	return document
}

func TestFitOpensEmbeddedTypes(t *testing.T) {
	cases := []struct{ name, template, want string }{
		{
			"descriptions go, except the one of the field itself",
			"{description: ours, type: object, properties: {a: {description: theirs, type: string}}}",
			"{description: ours, type: object, properties: {a: {type: string}}}",
		},
		{
			"a field called description stays",
			"{type: object, properties: {description: {description: theirs, type: string}}}",
			"{type: object, properties: {description: {type: string}}}",
		},
		{
			"defaults and judgments go",
			"{type: object, required: [a], properties: {a: {type: string, default: TCP, enum: [TCP], minLength: 1}}}",
			"{type: object, properties: {a: {type: string}}}",
		},
		{
			"quantities have no type, in maps too",
			"{type: object, additionalProperties: {anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+$', x-kubernetes-int-or-string: true}}",
			"{type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}}",
		},
		{
			"numbers or names of ports keep theirs",
			"{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}",
			"{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}",
		},
		{
			"containers are merged by name",
			"{type: object, properties: {containers: {type: array, items: {type: object, required: [name, image], properties: {name: {type: string}, image: {type: string}}}}}}",
			"{type: object, properties: {containers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, image: {type: string}}}}}}",
		},
		{
			"ports and variables are replaced as a whole",
			"{type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [containerPort, protocol], items: {type: object, required: [containerPort], properties: {protocol: {type: string, default: TCP}}}}}}",
			"{type: object, properties: {ports: {type: array, items: {type: object, properties: {protocol: {type: string}}}}}}",
		},
		{
			"a list of another kind with a name of those that are merged",
			"{type: object, properties: {volumes: {type: array, items: {type: string}}}}",
			"{type: object, properties: {volumes: {type: array, items: {type: string}}}}",
		},
		{
			"an embedded list is fitted by its items",
			"{type: array, items: {type: object, properties: {a: {type: string, default: b}}}}",
			"{type: array, items: {type: object, properties: {a: {type: string}}}}",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var want schema
			require.NoError(t, yaml.Unmarshal([]byte(c.want), &want))
			document := fitted(t, c.template, Options{Embedded: []string{"spec.template"}})
			properties := document["spec"].(schema)["versions"].([]any)[0].(schema)["schema"].(schema)["openAPIV3Schema"].(schema)["properties"].(schema)["spec"].(schema)["properties"].(schema)
			assert.Equal(t, want, properties["template"])
			assert.Equal(t, schema{"type": "string", "pattern": "x", "description": "ours"}, properties["size"], "the rest stays")
			assert.NotContains(t, document["spec"], "conversion")
		})
	}
}

func TestFitListsTheFieldsOfMetadata(t *testing.T) {
	node := schema{"type": "object", "properties": schema{"metadata": schema{"type": "object", "description": "theirs"}}}
	fitEmbedded("template", node)
	meta := node["properties"].(schema)["metadata"].(schema)
	assert.Equal(t, "object", meta["type"])
	fields := meta["properties"].(schema)
	assert.Equal(t, schema{"type": "object", "additionalProperties": schema{"type": "string"}}, fields["labels"])
	assert.Equal(t, true, fields["creationTimestamp"].(schema)["nullable"])
	assert.NotContains(t, fields, "lables")
}

func TestMetadataIsFittedWhereItIsEmbeddedItself(t *testing.T) {
	node := schema{"type": "object", "description": "ours"}
	fitEmbedded("metadata", node)
	assert.Contains(t, node["properties"], "labels")
	assert.Equal(t, "ours", node["description"])
}

func TestAPathOfOneVersionIsEnough(t *testing.T) {
	versions := `
  - name: v0
    schema: {openAPIV3Schema: {type: object}}
`
	two := strings.Replace(string(crd("{type: object, required: [a]}")), "versions:", "versions:"+strings.TrimRight(versions, "\n"), 1)
	out, err := Fit([]byte(two), Options{Embedded: []string{"spec.template"}})
	require.NoError(t, err)
	assert.NotContains(t, string(out), "required")
	assert.Contains(t, string(out), "name: v0")
}

func TestFitAddsTheConversionWebhook(t *testing.T) {
	document := fitted(t, "{type: object}", Options{ConversionService: "web-webhook", Namespace: "system"})
	assert.Equal(t, schema{
		"strategy": "Webhook",
		"webhook": schema{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             schema{"service": schema{"namespace": "system", "name": "web-webhook", "path": "/convert"}},
		},
	}, document["spec"].(schema)["conversion"])
}

func TestFitIsRepeatable(t *testing.T) {
	options := Options{Embedded: []string{"spec.template"}, ConversionService: "web-webhook", Namespace: "system"}
	once, err := Fit(crd("{type: object, properties: {metadata: {type: object}, volumes: {type: array, items: {type: object, properties: {name: {type: string}}}}}}"), options)
	require.NoError(t, err)
	twice, err := Fit(once, options)
	require.NoError(t, err)
	assert.Equal(t, string(once), string(twice))
}

func TestFitNamesWhatIsMissing(t *testing.T) {
	cases := []struct{ name, crd, path, want string }{
		{"no YAML", "{", "", "parse the CRD"},
		{"no versions", "spec: {}", "", "the CRD has no versions"},
		{"no schema", "spec: {versions: [{name: v1}]}", "spec", "version v1: there is no schema"},
		{"no such path", string(crd("{type: object}")), "spec.templates", "version v1: path spec.templates: there is no templates"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Fit([]byte(c.crd), Options{Embedded: []string{c.path}})
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestRunReadsAndWrites(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(Options{}, bytes.NewReader(crd("{type: object}")), &out))
	assert.Contains(t, out.String(), "openAPIV3Schema")
}
