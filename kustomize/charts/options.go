package charts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// These stand in rendered manifests in the place of values.
const (
	registryHolder  = "registry.invalid"
	versionHolder   = "v0.0.0-holder"
	namespaceHolder = "namespace-holder"
	secretHolder    = "secret-holder"
)

// option is a choice of the user that changes manifests.
type option struct {
	// variable is the name of the template's variable that says whether it is chosen, and value how it is set.
	variable, value string
	// settings are the choice alone.
	settings install.Settings
	// component names the component that is chosen, if it is one.
	component string
}

// chosen is the condition of the option.
func (o option) chosen() string { return "$" + o.variable }

// onlyNamespace restricts a manager to a namespace. Its objects differ with each component, so it is combined with them.
func onlyNamespace() option {
	return option{
		variable: "onlyNamespace",
		value:    ".Values.onlyNamespace",
		settings: install.Settings{OnlyNamespace: namespaceHolder},
	}
}

// optionsOf returns the options of a feature in the order in which they change a list.
func optionsOf(feature catalog.Feature) []option {
	var all []option
	for _, component := range Components(feature) {
		value := fmt.Sprintf("has %q $components", component)
		for _, gate := range feature.Gates {
			if turnedOn, has := feature.Gate(gate); has && turnedOn == component {
				value = fmt.Sprintf("or (%s) .Values.featureGates.%s", value, gate)
			}
		}
		all = append(all, option{
			variable:  variableOf(component),
			value:     value,
			component: component,
			settings:  install.Settings{Components: []string{component}},
		})
	}
	for _, component := range feature.Defaults {
		all = append(all, option{
			variable: "without" + capitalized(variableOf(component)),
			value:    fmt.Sprintf("has %q .Values.without", component),
			settings: install.Settings{Without: []string{component}},
		})
	}
	all = append(all, onlyNamespace())
	if gate := plainGate(feature); gate != "" {
		all = append(all, option{
			variable: "gates",
			value:    "",
			settings: install.Settings{Gates: map[string][]install.Gate{feature.Name: {{Name: gate}}}},
		})
	}
	return append(all, option{
		variable: "imagePullSecret",
		value:    ".Values.imagePullSecret | default (.Values.global).imagePullSecret",
		settings: install.Settings{PullSecret: secretHolder},
	})
}

// Components returns the components that can be added to a feature, by name.
func Components(feature catalog.Feature) []string {
	all := slices.Concat(install.Shared(), feature.Components)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return slices.Contains(feature.Defaults, name) })
}

// plainGate returns a feature gate of a feature that no component turns on; empty if there is none.
func plainGate(feature catalog.Feature) string {
	for _, gate := range feature.Gates {
		if _, has := feature.Gate(gate); !has {
			return gate
		}
	}
	return ""
}

// componentGates returns the feature gates of a feature that components turn on.
func componentGates(feature catalog.Feature) []string {
	return slices.DeleteFunc(slices.Clone(feature.Gates), func(gate string) bool { _, has := feature.Gate(gate); return !has })
}

func capitalized(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func variableOf(component string) string { return strings.ReplaceAll(component, "-", "") }

// used finds the variables of a template.
var used = regexp.MustCompile(`\$[a-z]\w*`)

// withVariables returns a template with the variables that it uses, set at its beginning.
func withVariables(text string, feature catalog.Feature, options []option) string {
	var head []string
	variables := used.FindAllString(text, -1)
	uses := func(name string) bool { return slices.Contains(variables, name) }
	components := false
	for _, option := range options {
		if !uses(option.chosen()) {
			continue
		}
		if strings.Contains(option.value, "$components") && !components {
			components = true
			head = append(head, "{{- $components := concat .Values.components ((.Values.global).components | default list) }}")
		}
		if option.variable == "gates" {
			head = append(head, gatesVariable(feature)...)
			continue
		}
		head = append(head, fmt.Sprintf("{{- %s := %s }}", option.chosen(), option.value))
	}
	return strings.Join(append(head, text), "\n")
}

// gatesVariable returns the lines that gather the feature gates for the command line: those that no component sets.
func gatesVariable(feature catalog.Feature) []string {
	condition := ""
	if gates := componentGates(feature); len(gates) > 0 {
		condition = fmt.Sprintf("(not (and $on (has $name (list %s))))", quoted(gates))
	}
	return slices.Concat(
		[]string{"{{- $gates := list }}", "{{- range $name, $on := .Values.featureGates }}"},
		conditional(condition, []string{`{{- $gates = append $gates (printf "%s=%t" $name $on) }}`}),
		[]string{"{{- end }}"},
	)
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, fmt.Sprintf("%q", word))
	}
	return strings.Join(all, " ")
}
