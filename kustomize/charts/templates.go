package charts

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// keep is the annotation by which Helm leaves an object when a release goes or no longer has it.
const keep = "helm.sh/resource-policy"

// manifest is an object of a feature as its options change it.
type manifest struct {
	kind, namespace, name string
	root                  *node
	// example is the object without an option that is not needed for it.
	example *unstructured.Unstructured
}

// file is the name of the template.
func (m manifest) file() string {
	parts := []string{strings.ToLower(m.kind), strings.ReplaceAll(m.name, ":", "-")}
	switch m.namespace {
	case "", catalog.Namespace:
	case namespaceHolder:
		parts = append(parts, "only-namespace")
	default:
		parts = append(parts, m.namespace)
	}
	return "templates/" + strings.Join(parts, "-") + ".yaml"
}

// rendered are objects by identity, in order.
type rendered struct {
	order []string
	by    map[string]*unstructured.Unstructured
}

func (r rendered) value(id string) any {
	if object, has := r.by[id]; has {
		return object.Object
	}
	return absent{}
}

// differs reports whether objects differ from base. Objects that both base and others have are ignored.
func (r rendered) differs(base, others rendered) bool {
	for _, id := range slices.Concat(r.order, base.order) {
		_, both := others.by[id]
		if _, was := base.by[id]; (!was || !both) && !reflect.DeepEqual(r.value(id), base.value(id)) {
			return true
		}
	}
	return false
}

// renderer renders a feature with options.
type renderer struct {
	feature catalog.Feature
	options []option
}

// with renders the feature with the settings of options together.
func (r renderer) with(options ...option) (rendered, error) {
	settings := install.Settings{Registry: registryHolder, Versions: map[string]string{r.feature.Name: versionHolder}}
	for _, o := range options {
		settings.Components = append(settings.Components, o.settings.Components...)
		settings.Without = append(settings.Without, o.settings.Without...)
		if o.settings.Gates != nil {
			settings.Gates = o.settings.Gates
		}
		settings.OnlyNamespace += o.settings.OnlyNamespace
		settings.PullSecret += o.settings.PullSecret
	}
	objects, err := install.Manifests(r.feature, settings)
	if err != nil {
		return rendered{}, err
	}
	all := rendered{by: map[string]*unstructured.Unstructured{}}
	for _, object := range objects {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", install.SettingsAnnotation)
		if len(object.GetAnnotations()) == 0 {
			object.SetAnnotations(nil)
		}
		id := object.GetKind() + " " + object.GetNamespace() + " " + object.GetName()
		all.order = append(all.order, id)
		all.by[id] = object
	}
	return all, nil
}

// manifests renders the feature with each option, and merges the results.
func (r renderer) manifests() ([]manifest, error) {
	base, err := r.with()
	if err != nil {
		return nil, err
	}
	alone := make([]rendered, len(r.options))
	narrowed := make([]rendered, len(r.options))
	restricted, err := r.with(onlyNamespace())
	if err != nil {
		return nil, err
	}
	for i, o := range r.options {
		if alone[i], err = r.with(o); err != nil {
			return nil, err
		}
		if o.variable == onlyNamespace().variable || !alone[i].differs(base, restricted) {
			continue
		}
		if narrowed[i], err = r.with(o, onlyNamespace()); err != nil {
			return nil, err
		}
	}
	var ids []string
	for _, all := range slices.Concat([]rendered{base}, alone, narrowed) {
		for _, id := range all.order {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	var all []manifest
	for _, id := range ids {
		merged, err := r.merge(id, base, alone, narrowed)
		if err != nil {
			return nil, fmt.Errorf("merge %s of %s: %w", id, r.feature.Name, err)
		}
		all = append(all, merged)
	}
	return all, nil
}

// merge merges one object. One that base lacks is there with a component, with the restriction to a namespace, or with both.
func (r renderer) merge(id string, base rendered, alone, narrowed []rendered) (manifest, error) {
	restricted := slices.IndexFunc(r.options, func(o option) bool { return o.variable == onlyNamespace().variable })
	var variants []variant
	if object, has := base.by[id]; has {
		for i, o := range r.options {
			variants = append(variants, variant{o.chosen(), alone[i].value(id)})
		}
		return newManifest(object, merge(object.Object, variants)), nil
	}
	if object, has := alone[restricted].by[id]; has {
		for i, o := range r.options {
			if narrowed[i].by != nil {
				variants = append(variants, variant{o.chosen(), narrowed[i].value(id)})
			}
		}
		merged := merge(object.Object, variants)
		merged.when = allOf(onlyNamespace().chosen(), merged.when)
		return newManifest(object, merged), nil
	}
	var with []string
	var object *unstructured.Unstructured
	var narrow any
	for i, o := range r.options {
		if found, has := alone[i].by[id]; has {
			if object != nil && !reflect.DeepEqual(object.Object, found.Object) {
				return manifest{}, errors.New("two components add it, each in its way")
			}
			object = found
			narrow = narrowed[i].value(id)
			with = append(with, o.chosen())
		}
	}
	if object != nil {
		merged := merge(object.Object, []variant{{onlyNamespace().chosen(), narrow}})
		merged.when = allOf(anyOf(with), merged.when)
		return newManifest(object, merged), nil
	}
	for i, o := range r.options {
		if found, has := narrowed[i].by[id]; has {
			object = found
			with = append(with, o.chosen())
		}
	}
	return newManifest(object, &node{value: object.Object, when: allOf(anyOf(with), onlyNamespace().chosen())}), nil
}

func newManifest(object *unstructured.Unstructured, root *node) manifest {
	return manifest{
		kind:      object.GetKind(),
		namespace: object.GetNamespace(),
		name:      object.GetName(),
		root:      root,
		example:   object,
	}
}

// kept has Helm leave the object in the cluster.
func (m manifest) kept() {
	m.root.open("metadata").open("annotations").set(keep, &node{value: "keep"})
}

// image finds the references of images.
var image = regexp.MustCompile(regexp.QuoteMeta(registryHolder) + `/flotilla/([\w-]+):` + regexp.QuoteMeta(versionHolder))

// template writes the template of an object.
func (m manifest) template(chart string, feature catalog.Feature, options []option) (File, error) {
	lines, err := m.root.lines()
	if err != nil {
		return File{}, fmt.Errorf("write %s %s: %w", m.kind, m.name, err)
	}
	text := strings.Join(conditional(m.root.when, lines), "\n") + "\n"
	text = image.ReplaceAllString(text, fmt.Sprintf(`{{ include "%s.image" (list . "$1") }}`, chart))
	if gate := plainGate(feature); gate != "" {
		text = regexp.MustCompile(`(?m)^( *)- --feature-gates=`+gate+`=false$`).ReplaceAllString(text,
			"${1}{{- range $$gates }}\n${1}- --feature-gates={{ . }}\n${1}{{- end }}")
	}
	text = strings.NewReplacer(
		versionHolder, fmt.Sprintf(`{{ include "%s.version" . }}`, chart),
		"app.kubernetes.io/managed-by: flotilla", "app.kubernetes.io/managed-by: {{ .Release.Service }}",
		namespaceHolder, "{{ $onlyNamespace | quote }}",
		secretHolder, "{{ $imagePullSecret | quote }}",
	).Replace(text)
	return File{m.file(), []byte(withVariables(text, feature, options))}, nil
}
