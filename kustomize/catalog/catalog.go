package catalog

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize"
	"github.com/flotilla-project/flotilla/kustomize/render"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// All is the name that stands for every feature.
const All = "all"

// Namespace is where operators run.
const Namespace = "flotilla-system"

// Registry is where a release has pushed its images; empty in a build that is none.
var Registry string //nolint:gochecknoglobals // the linker sets it

// Digests are the digests of the images in Registry, as NAME=DIGEST with commas between; empty in a build that is no release.
var Digests string //nolint:gochecknoglobals // the linker sets it

// DigestOf returns the digest of an image in Registry, such as "flotilla/cloneset-manager"; empty in a build that is no release.
func DigestOf(image string) string {
	for pin := range strings.SplitSeq(Digests, ",") {
		if name, digest, _ := strings.Cut(pin, "="); name == image {
			return digest
		}
	}
	return ""
}

// Feature is an operator that can be installed by itself.
type Feature struct {
	// Name is the folder of its module.
	Name string
	// Workload means that its one kind is a workload.
	Workload bool
	// Version is the version of its manifests and the tag of its images.
	Version string
	// Images are the images' names in the manifests, such as "flotilla/cloneset-manager".
	Images []string
	// Components are the folders of its config that are components, in order.
	Components []string
	// Defaults are those of them that its manifests have unless they are left out.
	Defaults []string
	// Gates are the feature gates that its manager reads, by name.
	Gates []string
	// Schemaless says that its CRDs have no schemas.
	Schemaless bool

	files fs.FS
	// gates are the components that turn a feature gate on.
	gates map[string]string
}

// Gate returns the component that turns a feature gate on, if it has one. Other gates need no more than the flag.
func (f Feature) Gate(name string) (component string, found bool) {
	component, found = f.gates[name]
	return component, found
}

// GrantOf returns the name of the role of a component, and of its binding: those of a component of Defaults are all that it adds.
func (f Feature) GrantOf(component string) string { return f.Name + "-manager-" + component }

// Features returns all features by name.
func Features() ([]Feature, error) {
	features := described()
	for i := range features {
		if err := features[i].read(); err != nil {
			return nil, fmt.Errorf("read the manifests of %s: %w", features[i].Name, err)
		}
	}
	slices.SortFunc(features, func(a, b Feature) int { return strings.Compare(a.Name, b.Name) })
	return features, nil
}

// Select returns the named features once each, by name; "all" stands for every feature.
func Select(names ...string) ([]Feature, error) {
	features, err := Features()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, feature := range features {
		known = append(known, feature.Name)
	}
	for _, name := range names {
		if name != All && !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown feature %q: use %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(features, func(f Feature) bool {
		return !slices.Contains(names, All) && !slices.Contains(names, f.Name)
	}), nil
}

// Tree returns the manifests of the features and the shared ones, laid out as in the repository.
func Tree(features ...Feature) (render.Tree, error) {
	folders := map[string]fs.FS{"kustomize": kustomize.Files}
	for _, feature := range features {
		folders[feature.Name+"/config"] = feature.files
	}
	return render.NewTree(folders)
}

// gate is how a component turns a feature gate on.
var gate = regexp.MustCompile(`--feature-gates=(\w+)=true`)

// read adds what the manifests say.
func (f *Feature) read() error {
	f.gates = map[string]string{}
	kustomizations, err := fs.Glob(f.files, "*/kustomization.yaml")
	if err != nil {
		return err
	}
	for _, file := range kustomizations {
		text, err := fs.ReadFile(f.files, file)
		if err != nil {
			return err
		}
		var kustomization types.Kustomization
		if err := yaml.Unmarshal(text, &kustomization); err != nil {
			return fmt.Errorf("parse %s: %w", file, err)
		}
		folder := path.Dir(file)
		switch {
		case kustomization.Kind == types.ComponentKind:
			f.Components = append(f.Components, folder)
			for _, found := range gate.FindAllSubmatch(text, -1) {
				f.gates[string(found[1])] = folder
			}
		case folder == "default":
			for _, image := range kustomization.Images {
				f.Images = append(f.Images, image.Name)
				f.Version = image.NewTag
			}
			for _, component := range kustomization.Components {
				f.Defaults = append(f.Defaults, path.Base(component))
			}
		}
	}
	return nil
}
