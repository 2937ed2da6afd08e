package charts

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

const (
	// Umbrella is the chart of all operators.
	Umbrella = "flotilla"
	// Definitions is the chart of all CRDs.
	Definitions = "flotilla-crds"
	// Base is the chart of the objects that operators share.
	Base = "flotilla-base"

	project = "https://github.com/flotilla-project/flotilla"
)

// Chart is a Helm chart.
type Chart struct {
	Name, Version string
	// Metadata is the content of Chart.yaml.
	Metadata Metadata
	// Files are all files with Chart.yaml, in the order of an archive.
	Files []File
}

// File is a file of a chart; its name is relative to the chart's folder.
type File struct {
	Name    string
	Content []byte
}

// Metadata describes a chart.
type Metadata struct {
	APIVersion   string       `json:"apiVersion"`
	Name         string       `json:"name"`
	Description  string       `json:"description"`
	Type         string       `json:"type"`
	Version      string       `json:"version"`
	AppVersion   string       `json:"appVersion"`
	KubeVersion  string       `json:"kubeVersion"`
	Home         string       `json:"home"`
	Sources      []string     `json:"sources"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// Dependency is a chart within a chart.
type Dependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	// Alias is the name of its values.
	Alias     string   `json:"alias,omitempty"`
	Condition string   `json:"condition,omitempty"`
	Tags      []string `json:"tags,omitempty"`
}

// DefinitionsOf returns the name of the chart with the CRDs of a feature.
func DefinitionsOf(feature string) string { return feature + "-crds" }

// Of returns the charts of a feature: its operator, and its CRDs. Registry is where images come from unless the user names
// another one; empty means that the user has to.
func Of(feature catalog.Feature, registry string) (operator, definitions Chart, err error) {
	light, err := feature.WithoutSchemas()
	if err != nil {
		return operator, definitions, err
	}
	options := optionsOf(feature)
	manifests, err := renderer{light, options}.manifests()
	if err != nil {
		return operator, definitions, err
	}
	var crds, others []manifest
	for _, m := range manifests {
		switch {
		case m.kind == "CustomResourceDefinition":
			m.kept()
			crds = append(crds, m)
		case install.IsShared(m.example):
		default:
			others = append(others, m)
		}
	}
	if operator, err = operatorOf(feature, registry, options, others, crds); err != nil {
		return operator, definitions, fmt.Errorf("write the chart of %s: %w", feature.Name, err)
	}
	if definitions, err = definitionsOf(feature, options, crds); err != nil {
		return operator, definitions, fmt.Errorf("write the chart of the CRDs of %s: %w", feature.Name, err)
	}
	return operator, definitions, nil
}

func operatorOf(feature catalog.Feature, registry string, options []option, manifests, crds []manifest) (Chart, error) {
	values := featureValues(feature, registry)
	var names []string
	for _, crd := range crds {
		names = append(names, crd.name)
	}
	files := []File{
		{"templates/NOTES.txt", []byte(featureNotes(feature))},
		{"templates/_images.tpl", []byte(imageTemplates(feature.Name, registry))},
		{"templates/checks.yaml", []byte(featureChecks(feature, names))},
	}
	for _, m := range manifests {
		switch m.kind {
		case "Namespace":
			m.kept()
		case "Deployment", "DaemonSet":
			more, err := configurable(feature, m)
			if err != nil {
				return Chart{}, err
			}
			values = append(values, more...)
		}
		file, err := m.template(feature.Name, feature, options)
		if err != nil {
			return Chart{}, err
		}
		files = append(files, file)
	}
	return newChart(Metadata{
		Name: feature.Name, AppVersion: feature.Version,
		Description: "The operator of feature " + feature.Name + " of Flotilla; its CRDs are in chart " + DefinitionsOf(feature.Name),
	}, values, files)
}

// definitionsOf returns the chart of the CRDs, with their schemas.
func definitionsOf(feature catalog.Feature, options []option, crds []manifest) (Chart, error) {
	full, err := install.Manifests(feature, install.Settings{Registry: registryHolder})
	if err != nil {
		return Chart{}, err
	}
	name := DefinitionsOf(feature.Name)
	files := []File{
		{"templates/NOTES.txt", []byte(definitionsNotes(feature))},
		{"templates/_version.tpl", []byte(versionTemplate(name, ".Chart.AppVersion"))},
	}
	var components []string
	for _, m := range crds {
		for _, object := range full {
			if object.GetKind() == m.kind && object.GetName() == m.name {
				spec, _ := object.Object["spec"].(map[string]any)
				m.root.open("spec").set("versions", &node{value: spec["versions"]})
			}
		}
		file, err := m.template(name, feature, withoutGates(options))
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
	return newChart(Metadata{
		Name: name, AppVersion: feature.Version,
		Description: "The CRDs of feature " + feature.Name + " of Flotilla; Helm leaves them in the cluster",
	}, definitionsValues(slices.Compact(components)), files)
}

// withoutGates returns options that are chosen by components alone: a chart of CRDs has no feature gates.
func withoutGates(options []option) []option {
	all := slices.Clone(options)
	for i, o := range all {
		if o.component != "" {
			all[i].value = fmt.Sprintf("has %q $components", o.component)
		}
	}
	return all
}

// newChart completes a chart with its description, values and their schema.
func newChart(metadata Metadata, values settings, files []File) (Chart, error) {
	metadata.APIVersion = "v2"
	metadata.Type = "application"
	metadata.Home = project
	metadata.Sources = []string{project}
	metadata.Version = strings.TrimPrefix(metadata.AppVersion, "v")
	metadata.KubeVersion = ">=" + apply.Oldest + ".0-0"
	description, err := yaml.Marshal(metadata)
	if err != nil {
		return Chart{}, fmt.Errorf("write Chart.yaml: %w", err)
	}
	defaults, err := values.defaults()
	if err != nil {
		return Chart{}, fmt.Errorf("write values.yaml: %w", err)
	}
	schema, err := values.schema()
	if err != nil {
		return Chart{}, fmt.Errorf("write values.schema.json: %w", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		if seen[file.Name] {
			return Chart{}, fmt.Errorf("two files of chart %s are %s", metadata.Name, file.Name)
		}
		seen[file.Name] = true
	}
	own := []File{{"Chart.yaml", description}, {"values.yaml", defaults}, {"values.schema.json", schema}}
	return Chart{
		Name:     metadata.Name,
		Version:  metadata.Version,
		Metadata: metadata,
		Files:    append(own, files...),
	}, nil
}
