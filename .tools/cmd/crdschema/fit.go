package main

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// schema is a node of an OpenAPI schema, or any other object of the CRD.
type schema = map[string]any

// Options describe what to change in a CRD.
type Options struct {
	// Embedded are the paths of embedded core types from the root of the object, such as "spec.template"
	// or "spec.volumeClaimTemplates". Each must exist in one version at least.
	Embedded []string
	// ConversionService serves /convert; empty leaves the CRD without conversion.
	ConversionService string
	// Namespace of the conversion Service.
	Namespace string
}

// Fit returns the CRD with embedded core types that accept what the API server accepts for built-in
// kinds, and with the conversion webhook. It fails when a path of the options is absent.
func Fit(crd []byte, options Options) ([]byte, error) {
	var document schema
	if err := yaml.Unmarshal(crd, &document); err != nil {
		return nil, fmt.Errorf("parse the CRD: %w", err)
	}
	spec, _ := document["spec"].(schema)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, errors.New("the CRD has no versions")
	}
	for _, path := range options.Embedded {
		if err := fitVersions(versions, path); err != nil {
			return nil, err
		}
	}
	if options.ConversionService != "" {
		spec["conversion"] = conversion(options)
	}
	return yaml.Marshal(document)
}

// fitVersions fits the embedded type at a path in every version that has it.
func fitVersions(versions []any, path string) error {
	var absent error
	found := false
	for _, version := range versions {
		root, err := child(version.(schema), "schema", "openAPIV3Schema")
		if err != nil {
			return fmt.Errorf("version %v: %w", version.(schema)["name"], err)
		}
		node, err := descend(root, path)
		if err != nil {
			absent = fmt.Errorf("version %v: %w", version.(schema)["name"], err)
			continue
		}
		fitEmbedded(path[strings.LastIndexByte(path, '.')+1:], node)
		found = true
	}
	if !found {
		return absent
	}
	return nil
}

// descend follows property names from an object schema; at the end it steps into list items.
func descend(root schema, path string) (schema, error) {
	node := root
	for name := range strings.SplitSeq(path, ".") {
		next, err := child(node, "properties", name)
		if err != nil {
			return nil, fmt.Errorf("path %s: %w", path, err)
		}
		node = next
	}
	if items, ok := node["items"].(schema); ok {
		return items, nil
	}
	return node, nil
}

func child(node schema, names ...string) (schema, error) {
	for _, name := range names {
		next, ok := node[name].(schema)
		if !ok {
			return nil, fmt.Errorf("there is no %s", name)
		}
		node = next
	}
	return node, nil
}

func conversion(options Options) schema {
	return schema{
		"strategy": "Webhook",
		"webhook": schema{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": schema{
				"service": schema{
					"namespace": options.Namespace,
					"name":      options.ConversionService,
					"path":      "/convert",
				},
			},
		},
	}
}
