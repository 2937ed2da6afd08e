package charts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// setting is a value of a chart.
type setting struct {
	name string
	// help is its comment in values.yaml.
	help string
	// value is the default; nil leaves the value out of values.yaml.
	value any
	rule  map[string]any
}

type settings []setting

// defaults returns values.yaml.
func (s settings) defaults() ([]byte, error) {
	var text bytes.Buffer
	for _, each := range s {
		if each.help == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "# %s\n", strings.ReplaceAll(each.help, "\n", "\n# "))
		lines, err := yaml.Marshal(map[string]any{each.name: each.value})
		if err != nil {
			return nil, err
		}
		text.Write(lines)
	}
	return text.Bytes(), nil
}

// schema returns values.schema.json: a value that it does not name is refused.
func (s settings) schema() ([]byte, error) {
	properties := map[string]any{}
	for _, each := range s {
		properties[each.name] = each.rule
	}
	rule := objectOf(properties)
	rule["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := json.MarshalIndent(rule, "", "  ")
	return append(text, '\n'), err
}

const (
	registryPattern  = `^([^/\s]+(/[^/\s]+)*)?$`
	tagPattern       = `^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$`
	digestPattern    = `^(sha256:[0-9a-f]{64})?$`
	labelPattern     = `^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$`
	subdomainPattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
)

// featureValues are the values of the operator of a feature. The values of its workloads are apart.
func featureValues(feature catalog.Feature, registry string) settings {
	digests := map[string]any{}
	var images []string
	for _, image := range feature.Images {
		_, name, _ := strings.Cut(image, "/")
		digests[name] = matching(digestPattern)
		images = append(images, name)
	}
	gates := map[string]any{}
	for _, gate := range feature.Gates {
		gates[gate] = map[string]any{"type": "boolean"}
	}
	from := "It has no default."
	if registry != "" {
		from = "The default is " + registry + "."
	}
	all := settings{
		{"registry", "Registry of the images: REGISTRY/flotilla/" + strings.Join(images, ", REGISTRY/flotilla/") + ".\n" +
			"If it is empty, global.registry counts. " + from, "", matching(registryPattern)},
		{"tag", "Tag of the images. The default is " + feature.Version + ", the version of the manifests.", "", matching(tagPattern)},
		{"digests", "Digests of the images, by name: " + images[0] + ": sha256:...", map[string]any{}, objectOf(digests)},
		{"components", "Components to add: " + strings.Join(Components(feature), ", ") + ".\nThe components of global.components are added, too.", []any{}, listOf(Components(feature))},
	}
	if len(feature.Defaults) > 0 {
		all = append(all, setting{"without", "Components to leave out: " + strings.Join(feature.Defaults, ", ") + ".", []any{}, listOf(feature.Defaults)})
	}
	narrow := matching(labelPattern)
	narrow["not"] = map[string]any{"const": catalog.Namespace}
	return append(all,
		setting{"featureGates", "Feature gates, as NAME: true. The operator has " + strings.Join(feature.Gates, ", ") + ".", map[string]any{}, objectOf(gates)},
		setting{"onlyNamespace", "Namespace to which the operator and its permissions are restricted.", "", narrow},
		setting{"imagePullSecret", "Pull Secret of the images, in namespace " + catalog.Namespace + ". If it is empty, global.imagePullSecret counts.", "", matching(subdomainPattern)},
		setting{name: "global", rule: map[string]any{"type": "object"}},
		setting{name: "enabled", rule: map[string]any{"type": "boolean"}},
	)
}

func definitionsValues(components []string) settings {
	return settings{
		{"components", "Components of the operator that change its CRDs: " + strings.Join(components, ", ") + ".\nThe components of global.components count, too.",
			[]any{}, listOf(components)},
		{name: "global", rule: map[string]any{"type": "object"}},
		{name: "enabled", rule: map[string]any{"type": "boolean"}},
	}
}

// configurable has a workload read its resources and its nodes from values. The defaults are the rendered values.
func configurable(feature catalog.Feature, m manifest) (settings, error) {
	own := ""
	isManager := m.name == feature.Name+"-manager"
	path := ".Values."
	if !isManager {
		own = strings.TrimPrefix(m.name, feature.Name+"-")
		path += own + "."
	}
	spec := m.root.open("spec").open("template").open("spec")
	container, err := onlyContainer(spec)
	if err != nil {
		return nil, err
	}
	var all settings
	add := func(at *node, name, help string, none any, indent int, rule map[string]any) {
		value := none
		if existing := at.open(name); existing.value != nil {
			value = existing.value
		}
		at.set(name, &node{raw: fmt.Sprintf("{{- with %s%s }}\n%s:\n  {{- toYaml . | nindent %d }}\n{{- end }}", path, name, name, indent)})
		all = append(all, setting{name, help, value, rule})
	}
	const ofPod, ofContainer = 8, 10
	add(container, "resources", "Resources of the container.", map[string]any{}, ofContainer, map[string]any{"type": "object"})
	add(spec, "nodeSelector", "Labels of the nodes that pods run on.", map[string]any{}, ofPod,
		map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}})
	add(spec, "tolerations", "Taints of nodes that pods tolerate.", []any{}, ofPod,
		map[string]any{"type": "array", "items": map[string]any{"type": "object"}})
	if isManager {
		lines, err := m.root.open("spec").open("replicas").entry("replicas")
		if err != nil {
			return nil, err
		}
		m.root.open("spec").set("replicas", &node{raw: "{{- if kindIs \"invalid\" .Values.replicas }}\n" + strings.Join(lines, "\n") +
			"\n{{- else }}\nreplicas: {{ int .Values.replicas }}\n{{- end }}"})
		return append(all, setting{"replicas", "Number of replicas. The default is 2 with component highavailability, otherwise 1.", nil,
			map[string]any{"type": []string{"integer", "null"}, "minimum": 0}}), nil
	}
	return settings{all.nested(own, "The "+own+" on each node.")}, nil
}

// nested returns settings as one, with the names of its own.
func (s settings) nested(name, help string) setting {
	value, properties := map[string]any{}, map[string]any{}
	for _, each := range s {
		value[each.name], properties[each.name] = each.value, each.rule
		help += "\n" + each.name + ": " + each.help
	}
	return setting{name, help, value, objectOf(properties)}
}

// onlyContainer returns the container of a pod, which is named as in all manifests.
func onlyContainer(spec *node) (*node, error) {
	containers := spec.open("containers")
	for _, name := range []string{"manager", "agent"} {
		if container, err := containers.openItem(name); err == nil {
			return container, nil
		}
	}
	return nil, fmt.Errorf("find container manager or agent")
}

func matching(pattern string) map[string]any {
	return map[string]any{"type": "string", "pattern": pattern}
}

func objectOf(properties map[string]any) map[string]any {
	return map[string]any{
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
}

func listOf(words []string) map[string]any {
	item := map[string]any{"type": "string"}
	if len(words) > 0 {
		item["enum"] = slices.Clone(words)
	}
	return map[string]any{"type": "array", "items": item, "uniqueItems": true}
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
