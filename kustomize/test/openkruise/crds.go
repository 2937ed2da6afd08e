package openkruise

import (
	"bufio"
	"embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// schemas are facts of OpenKruise's CRDs: names, columns, subresources, and the fields of versions with their types.
//
//go:embed crds/*.txt
var schemas embed.FS

// Releases are the releases of OpenKruise with known CRDs.
func Releases() []string { return []string{"1.7.3", "1.8.4", "1.9.0"} }

// versions returns the versions of a kind in a release; the last one is stored.
func versions(release, resource string) []string {
	switch {
	case resource == "statefulsets", release == "1.9.0" && (resource == "daemonsets" || resource == "broadcastjobs"):
		return []string{"v1alpha1", "v1beta1"}
	}
	return []string{"v1alpha1"}
}

// CRD returns the CRD of a kind in a release.
func (m Manager) CRD(release, resource string) (*unstructured.Unstructured, error) {
	text, err := schemas.ReadFile("crds/" + resource + ".txt")
	if err != nil {
		return nil, err
	}
	head, sections, _ := strings.Cut(string(text), "\n## ")
	facts := map[string]string{}
	for fact := range strings.FieldsSeq(head) {
		name, value, _ := strings.Cut(fact, "=")
		facts[name] = value
	}
	names := map[string]any{
		"kind":     facts["kind"],
		"listKind": facts["kind"] + "List",
		"plural":   facts["plural"],
		"singular": facts["singular"],
	}
	if facts["shortNames"] != "" {
		var short []any
		for name := range strings.SplitSeq(facts["shortNames"], ",") {
			short = append(short, name)
		}
		names["shortNames"] = short
	}
	var list []any
	known := versions(release, resource)
	for _, name := range known {
		version, err := readVersion(name, sections)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, resource, err)
		}
		version["storage"] = name == known[len(known)-1]
		list = append(list, version)
	}
	spec := map[string]any{
		"group":    facts["group"],
		"scope":    facts["scope"],
		"names":    names,
		"versions": list,
	}
	if len(list) > 1 {
		spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": m.Conversion()}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"spec":       spec,
	}}
	crd.SetName(facts["plural"] + "." + facts["group"])
	crd.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	return crd, nil
}

func readVersion(name, sections string) (map[string]any, error) {
	version := map[string]any{"name": name, "served": true}
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	var columns []any
	for section := range strings.SplitSeq(sections, "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if title != name {
			continue
		}
		for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
			line := lines.Text()
			if text, ok := strings.CutPrefix(line, "subresources: "); ok {
				subresources := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &subresources); err != nil {
					return nil, err
				}
				version["subresources"] = subresources
			} else if text, ok := strings.CutPrefix(line, "column "); ok {
				parts := strings.SplitN(text, " ", 3)
				columns = append(columns, map[string]any{
					"name":     parts[0],
					"type":     parts[1],
					"jsonPath": parts[2],
				})
			} else if path, kind, ok := strings.Cut(line, "  "); ok {
				place(schema, strings.ReplaceAll(path, "!", ""), strings.Fields(kind))
			}
		}
	}
	version["schema"], version["additionalPrinterColumns"] = map[string]any{"openAPIV3Schema": schema}, columns
	return version, nil
}

// place puts a field of a path such as "spec.items[].name" or "spec.labels{}" into a schema.
func place(schema map[string]any, path string, kind []string) {
	field := schema
	for part := range strings.SplitSeq(path, ".") {
		name := strings.TrimRight(part, "[]{}")
		field = child(child(field, "properties"), name)
		for rest := part[len(name):]; rest != ""; rest = rest[2:] {
			field = child(field, map[string]string{"[]": "items", "{}": "additionalProperties"}[rest[:2]])
		}
	}
	switch kind[0] {
	case "int-or-string":
		field["x-kubernetes-int-or-string"] = true
	case "array", "boolean", "integer", "object", "string", "number":
		field["type"] = kind[0]
	default: // a type of Kubernetes, or anything
		field["x-kubernetes-preserve-unknown-fields"] = true
	}
	for _, fact := range kind[1:] {
		if format, ok := strings.CutPrefix(fact, "format="); ok {
			field["format"] = format
		}
	}
}

func child(of map[string]any, name string) map[string]any {
	if found, ok := of[name].(map[string]any); ok {
		return found
	}
	made := map[string]any{}
	of[name] = made
	return made
}
