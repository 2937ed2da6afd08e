package charts

import (
	"fmt"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// imageTemplates defines the reference of an image and the version of a feature, as flotilla install would write them.
func imageTemplates(chart, registry string) string {
	return fmt.Sprintf(`{{- define "%[1]s.image" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $values := $root.Values }}
{{- $registry := coalesce $values.registry ($values.global).registry %[2]q }}
{{- $digest := index $values.digests $name }}
{{- $tag := ternary $values.tag ($values.tag | default $root.Chart.AppVersion) (not (empty $digest)) }}
{{- required "set registry, or global.registry, to where the images are: REGISTRY/flotilla/NAME" $registry }}/flotilla/{{ $name }}
{{- with $tag }}:{{ . }}{{ end }}
{{- with $digest }}@{{ . }}{{ end }}
{{- end }}
`, chart, registry) + versionTemplate(chart, "(.Values.tag | default .Chart.AppVersion)")
}

// versionTemplate defines the version of a feature as the value of a label.
func versionTemplate(chart, version string) string {
	return fmt.Sprintf(`{{- define "%s.version" -}}
{{- trunc 63 %s | trimAll "_-." | default .Chart.AppVersion | quote }}
{{- end }}
`, chart, version)
}

// featureChecks refuses an operator if its kinds are missing, or if another operator has them. Helm shows a cluster to a template when
// it installs or upgrades, and none when it only renders.
func featureChecks(feature catalog.Feature, crds []string) string {
	return fmt.Sprintf(`{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- range $name := list %[1]s }}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- if not $crd }}
{{- fail (printf "CRD %%s not found: install chart %[2]s first" $name) }}
{{- end }}
{{- if ne "flotilla" (index ($crd.metadata.labels | default dict) "app.kubernetes.io/part-of" | default "") }}
{{- fail (printf "CRD %%s is not one of Flotilla: another operator, such as OpenKruise, may manage its objects. To take them over: flotilla takeover %[3]s" $name) }}
{{- end }}
{{- end }}
{{- end }}
`, quoted(crds), DefinitionsOf(feature.Name), feature.Name)
}

// baseChecks refuses a namespace without the labels of the manifests: a policy selects it by one of them.
func baseChecks(labels map[string]string) string {
	var pairs, words []string
	for _, key := range sortedKeys(labels) {
		pairs = append(pairs, fmt.Sprintf("%q %q", key, labels[key]))
		words = append(words, key+"="+labels[key])
	}
	return fmt.Sprintf(`{{- if not .Values.namespace.create }}
{{- with lookup "v1" "Namespace" "" %[1]q }}
{{- $labels := .metadata.labels | default dict }}
{{- range $key, $value := dict %[2]s }}
{{- if ne $value (index $labels $key | default "") }}
{{- fail (printf "namespace %[1]s lacks label %%s=%%s: kubectl label namespace %[1]s --overwrite %[3]s" $key $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
`, catalog.Namespace, strings.Join(pairs, " "), strings.Join(words, " "))
}

func featureNotes(feature catalog.Feature) string {
	return fmt.Sprintf(`%[1]s {{ .Chart.AppVersion }} is installed in namespace %[2]s.

Wait until it is ready:

  kubectl -n %[2]s rollout status deployment/%[1]s-manager

Use it: %[3]s/blob/main/docs/features/%[1]s.md

When this release is uninstalled, CRDs, objects and pods stay.
`, feature.Name, catalog.Namespace, project)
}

func definitionsNotes(feature catalog.Feature) string {
	return fmt.Sprintf(`The CRDs of %[1]s {{ .Chart.AppVersion }} are installed. Next, install or upgrade the operator with chart %[1]s.

CRDs and their objects stay when this release is uninstalled. Do not roll it back: an older CRD drops the fields that it lacks.
`, feature.Name)
}
