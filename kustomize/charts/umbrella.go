package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// tag is the tag by which the umbrella charts enable every feature.
const tag = "all"

// BaseOf returns the chart of the objects that operators share: the namespace with its quota and its policy, and the objects of shared
// components. It needs all features, and the version of the manifests.
func BaseOf(version string, features []catalog.Feature) (Chart, error) {
	objects, err := install.Base()
	if err != nil {
		return Chart{}, err
	}
	var manifests []manifest
	var labels map[string]string
	for _, object := range objects {
		m := newManifest(object, &node{value: object.Object})
		if m.kind == "Namespace" {
			labels = object.GetLabels()
			m.kept()
			m.root.when = ".Values.namespace.create"
		}
		manifests = append(manifests, m)
	}
	light, err := features[0].WithoutSchemas()
	if err != nil {
		return Chart{}, err
	}
	// Options of a single feature change no shared object.
	options := slices.DeleteFunc(optionsOf(light), func(o option) bool {
		return o.variable != "onlyNamespace" && !slices.Contains(install.Shared(), o.component)
	})
	all, err := renderer{light, options}.manifests()
	if err != nil {
		return Chart{}, err
	}
	for _, m := range all {
		if install.IsShared(m.example) {
			manifests = append(manifests, m)
		}
	}
	files := []File{
		{"templates/_version.tpl", []byte(versionTemplate(Base, ".Chart.AppVersion"))},
		{"templates/checks.yaml", []byte(baseChecks(labels))},
	}
	var components []string
	for _, m := range manifests {
		file, err := m.template(Base, light, options)
		if err != nil {
			return Chart{}, err
		}
		for _, o := range options {
			if o.component != "" && slices.Contains(used.FindAllString(string(file.Content), -1), o.chosen()) {
				components = append(components, o.component)
			}
		}
		files = append(files, file)
	}
	slices.Sort(components)
	components = slices.Compact(components)
	return newChart(Metadata{Name: Base, AppVersion: version, Description: "The objects that the operators of Flotilla share"}, settings{
		{"namespace", "create: the release has namespace " + catalog.Namespace + ", too. It must then be stored in another namespace.",
			map[string]any{"create": false}, objectOf(map[string]any{"create": map[string]any{"type": "boolean"}})},
		{"components", "Components with objects that features share: " + strings.Join(components, ", ") + ".\nThe components of global.components are added, too.",
			[]any{}, listOf(components)},
		{name: "global", rule: map[string]any{"type": "object"}},
	}, files)
}

// All returns the charts of all features and, in the umbrella charts, all of them together. Version is the version of the umbrellas.
func All(version, registry string) ([]Chart, error) {
	features, err := catalog.Features()
	if err != nil {
		return nil, err
	}
	base, err := BaseOf(version, features)
	if err != nil {
		return nil, err
	}
	all := []Chart{base}
	operators := []Chart{base}
	definitions := []Chart{}
	var components []string
	for _, feature := range features {
		operator, crds, err := Of(feature, registry)
		if err != nil {
			return nil, err
		}
		all = append(all, operator, crds)
		operators = append(operators, operator)
		definitions = append(definitions, crds)
		components = append(components, Components(feature)...)
	}
	slices.Sort(components)
	components = slices.Compact(components)
	for _, u := range []struct {
		name, description string
		members           []Chart
	}{
		{Umbrella, "The operators of Flotilla, each if it is enabled; their CRDs are in chart " + Definitions, operators},
		{Definitions, "The CRDs of Flotilla, for each feature that is enabled; Helm leaves them in the cluster", definitions},
	} {
		chart, err := umbrella(Metadata{Name: u.name, AppVersion: version, Description: u.description}, registry, features, components, u.members)
		if err != nil {
			return nil, err
		}
		all = append(all, chart)
	}
	return all, nil
}

// umbrella returns a chart of charts. The charts of features are enabled by their names, or all by a tag.
func umbrella(metadata Metadata, registry string, features []catalog.Feature, components []string, members []Chart) (Chart, error) {
	var names, conditions []string
	of := map[string]string{}
	for _, feature := range features {
		of[feature.Name], of[DefinitionsOf(feature.Name)] = feature.Name, feature.Name
		names = append(names, feature.Name)
		conditions = append(conditions, fmt.Sprintf("(dig %q \"enabled\" .Values.tags.all $values)", feature.Name))
	}
	all := settings{
		{"tags", "all: every feature that is not disabled by FEATURE.enabled: false.", map[string]any{tag: false},
			objectOf(map[string]any{tag: map[string]any{"type": "boolean"}})},
		{"global", "Values for all charts: registry, imagePullSecret, components.", map[string]any{"registry": "", "imagePullSecret": "", "components": []any{}},
			objectOf(map[string]any{
				"registry":        matching(registryPattern),
				"imagePullSecret": matching(subdomainPattern),
				"components":      listOf(components),
			})},
	}
	var files []File
	for _, member := range members {
		dependency := Dependency{
			Name:       member.Name,
			Version:    member.Version,
			Repository: Repository(registry),
		}
		if feature := of[member.Name]; feature != "" {
			dependency.Alias = feature
			dependency.Condition = feature + ".enabled"
			dependency.Tags = []string{tag}
		}
		metadata.Dependencies = append(metadata.Dependencies, dependency)
		all = append(all, setting{name: cmp.Or(dependency.Alias, member.Name), rule: map[string]any{"type": "object"}})
		for _, file := range member.Files {
			files = append(files, File{"charts/" + member.Name + "/" + file.Name, file.Content})
		}
	}
	own := []File{
		{"templates/NOTES.txt", []byte(umbrellaNotes(metadata.Name))},
		{"templates/checks.yaml", fmt.Appendf(nil, "{{- $values := .Values | toYaml | fromYaml }}\n{{- if not (or %s) }}\n"+
			"{{- fail \"enable a feature: --set %s.enabled=true, or all of them: --set tags.all=true. The features are %s\" }}\n{{- end }}\n",
			strings.Join(conditions, " "), names[0], strings.Join(names, ", "))},
	}
	return newChart(metadata, all, append(own, files...))
}

// Repository returns where the charts of a registry are; empty if there is none.
func Repository(registry string) string {
	if registry == "" {
		return ""
	}
	return "oci://" + registry + "/flotilla/charts"
}

func umbrellaNotes(chart string) string {
	if chart == Definitions {
		return "The CRDs are installed. Next, install or upgrade the operators with chart " + Umbrella + `.

CRDs and their objects stay when this release is uninstalled. Do not roll it back: an older CRD drops the fields that it lacks.
`
	}
	return fmt.Sprintf(`Flotilla is installed in namespace %[1]s. Wait until its operators are ready:

  kubectl -n %[1]s get deployments --selector app.kubernetes.io/part-of=flotilla

Use them: %[2]s/blob/main/docs/README.md

When this release is uninstalled, CRDs, objects and pods stay.
`, catalog.Namespace, project)
}
