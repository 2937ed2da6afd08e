package fuzz

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// CRD is a CustomResourceDefinition: its kind, and the schema of each apiVersion.
type CRD struct {
	Kind    string
	schemas map[string]*spec.Schema
}

// ReadCRD reads the CRD of a YAML file.
func ReadCRD(tb testing.TB, file string) CRD {
	tb.Helper()
	text, err := os.ReadFile(file)
	require.NoError(tb, err)
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema json.RawMessage }
			}
		}
	}
	require.NoError(tb, yaml.Unmarshal(text, &crd), file)
	out := CRD{Kind: crd.Spec.Names.Kind, schemas: map[string]*spec.Schema{}}
	for _, version := range crd.Spec.Versions {
		schema := &spec.Schema{}
		require.NoError(tb, json.Unmarshal(version.Schema.OpenAPIV3Schema, schema), file)
		out.schemas[crd.Spec.Group+"/"+version.Name] = schema
	}
	return out
}

// versions returns the apiVersions in order.
func (c CRD) versions() []string { return slices.Sorted(maps.Keys(c.schemas)) }

// schema returns the schema of the object, nil for one of another kind or version.
func (c CRD) schema(object Object) *spec.Schema {
	version, _ := object["apiVersion"].(string)
	if object["kind"] != c.Kind {
		return nil
	}
	return c.schemas[version]
}

// Accepts reports whether the API server finds no error in the object by the schema of its version: types, enumerations,
// bounds, required fields and the types of metadata. Rules in CEL are left out.
func (c CRD) Accepts(object Object) bool {
	schema := c.schema(object)
	return schema != nil && hasMetadata(object) && validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(object).IsValid()
}

// hasMetadata reports whether the metadata has a name, and no other fields than those of all objects.
func hasMetadata(object Object) bool {
	meta, _ := object["metadata"].(Object)
	raw, err := json.Marshal(meta)
	if name, _ := meta["name"].(string); err != nil || name == "" {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(&metav1.ObjectMeta{}) == nil
}

// prune removes the fields that the schema lacks, as the API server does before it asks for a conversion.
func prune(value any, schema *spec.Schema) {
	switch value := value.(type) {
	case Object:
		for name := range value {
			of := member(schema, name)
			if of == nil && len(schema.Properties) > 0 {
				delete(value, name)
			} else if of != nil {
				prune(value[name], of)
			}
		}
	case []any:
		if schema.Items != nil && schema.Items.Schema != nil {
			for _, item := range value {
				prune(item, schema.Items.Schema)
			}
		}
	}
}
