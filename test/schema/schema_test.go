package schema

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

type properties = apiextensionsv1.JSONSchemaProps

// embedded are the places of types of Kubernetes in the specs of the kinds.
func embedded() map[string]map[string]reflect.Type {
	template, claim := reflect.TypeFor[corev1.PodTemplateSpec](), reflect.TypeFor[corev1.PersistentVolumeClaim]()
	return map[string]map[string]reflect.Type{
		"CloneSet":     {"template": template, "volumeClaimTemplates": claim},
		"StatefulSet":  {"template": template, "volumeClaimTemplates": claim},
		"DaemonSet":    {"template": template},
		"BroadcastJob": {"template": template},
		"AdvancedCronJob": {
			"template.jobTemplate": reflect.TypeFor[batchv1.JobTemplateSpec](), "template.broadcastJobTemplate.spec.template": template,
		},
	}
}

// A field that the schema lacks is cut off without a word, and pods never get it.
func TestSchemasHaveAllFieldsOfKubernetes(t *testing.T) {
	places := embedded()
	for _, crd := range crds(t) {
		kind := crd.Spec.Names.Kind
		for path, goType := range places[kind] {
			found := 0
			for _, version := range crd.Spec.Versions {
				at := version.Name + " " + kind + ".spec." + path
				if node := below(version.Schema.OpenAPIV3Schema, "spec."+path); node != nil {
					found++
					compare(t, at, node, goType)
				}
			}
			assert.Positive(t, found, "%s has no %s", kind, path)
		}
		delete(places, kind)
	}
	assert.Empty(t, places, "kinds without a CRD")
}

func crds(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return slices.Collect(maps.Values(crdFiles(t)))
}

// crdFiles returns the CRDs of all modules by file.
func crdFiles(tb testing.TB) map[string]apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "*", "config", "crd", "*.yaml"))
	require.NoError(tb, err)
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(tb, yaml.Unmarshal(text, &crd), file)
		if crd.Kind == "CustomResourceDefinition" {
			all[file] = crd
		}
	}
	return all
}

// below returns the schema at a path of property names, of a list that of its items, or nil.
func below(node *properties, path string) *properties {
	for name := range strings.SplitSeq(path, ".") {
		next, ok := node.Properties[name]
		if !ok {
			return nil
		}
		node = items(&next)
	}
	return node
}

func items(node *properties) *properties {
	if node.Items != nil && node.Items.Schema != nil {
		return node.Items.Schema
	}
	return node
}

// compare asks the schema for each field of the type, and so on for the types of its fields.
func compare(t *testing.T, at string, node *properties, goType reflect.Type) {
	t.Helper()
	if node.XPreserveUnknownFields != nil && *node.XPreserveUnknownFields {
		return
	}
	switch goType.Kind() {
	case reflect.Pointer:
		compare(t, at, node, goType.Elem())
	case reflect.Slice:
		compare(t, at+"[]", items(node), goType.Elem())
	case reflect.Map:
		if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
			compare(t, at+"{}", node.AdditionalProperties.Schema, goType.Elem())
		}
	case reflect.Struct:
		compareFields(t, at, node, goType)
	default: // a value without parts
	}
}

// whole are types with a form of their own, and metadata, of which a template has a part.
func whole() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.ObjectMeta](),
	}
}

func compareFields(t *testing.T, at string, node *properties, goType reflect.Type) {
	t.Helper()
	if slices.Contains(whole(), goType) {
		return
	}
	for field := range goType.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			compare(t, at, node, field.Type)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		property, ok := node.Properties[name]
		if assert.True(t, ok, "%s.%s is not in the schema: make generate", at, name) {
			compare(t, at+"."+name, &property, field.Type)
		}
	}
}
