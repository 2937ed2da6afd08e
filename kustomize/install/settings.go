package install

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// Settings are the choices of a user about features.
type Settings struct {
	// Registry is put before the names of images; empty leaves them as they are.
	Registry string
	// Versions are the tags of images by feature, each a tag, a digest or TAG@DIGEST.
	Versions map[string]string
	// Components are names of shared components and of components of features.
	Components []string
	// Without are names of components that features have by default, and that are left out.
	Without []string
	// Gates are feature gates by feature, in the order given.
	Gates map[string][]Gate
	// OnlyNamespace is the namespace that managers are restricted to; empty for none.
	OnlyNamespace string
	// PullSecret is the Secret in the operators' namespace with which nodes pull images; empty for none.
	PullSecret string
	// Patches are strategic merge patches of objects of the manifests, one document each.
	Patches []string
}

// Gate is a feature gate that is set.
type Gate struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
	// Forget means that the value of an earlier install is forgotten; it is not remembered itself.
	Forget bool `json:"-"`
}

// Choices are settings as flags give them.
type Choices struct {
	Registry      string
	Versions      []string
	Components    []string
	Without       []string
	Gates         []string
	OnlyNamespace string
	PullSecret    string
	// Patches are the names of files with patches.
	Patches []string
}

// AddTo adds the flags.
func (c *Choices) AddTo(set *pflag.FlagSet) {
	set.StringVar(&c.Registry, "registry", "", "registry of the images: REGISTRY/flotilla/FEATURE-manager")
	set.StringSliceVar(&c.Versions, "version", nil, "tag of the images, or TAG@DIGEST, for all features or as FEATURE=TAG")
	set.StringSliceVar(&c.Components, "component", nil, "components to add: "+strings.Join(Shared(), ", ")+", or a component of a feature")
	set.StringSliceVar(&c.Without, "without", nil, "components to leave out of those that are installed by default, such as pullsecrets of jobs")
	set.StringSliceVar(&c.Gates, "feature-gates", nil, "feature gates, as NAME=true or FEATURE:NAME=true; NAME- discards the value of an earlier install")
	set.StringVar(&c.PullSecret, "image-pull-secret", "", "pull Secret of the images, in namespace "+Namespace)
	set.StringArrayVar(&c.Patches, "patch", nil, "file with strategic merge patches of the manifests, as in kustomize; may be repeated")
}

// Shared returns the components that fit every feature and need no more than their name.
func Shared() []string {
	return []string{"clientcertificates", "highavailability", "networkpolicy", "prometheus"}
}

// Read reads the settings for features from flags: versions as FEATURE=TAG, or TAG for all features; gates as NAME=BOOL or
// FEATURE:NAME=BOOL. A gate without a feature is for the features with managers that read it. Errors are misuse.
func Read(features []catalog.Feature, choices Choices) (Settings, error) {
	settings := Settings{
		Versions:      map[string]string{},
		Components:    choices.Components,
		Without:       choices.Without,
		Gates:         map[string][]Gate{},
		OnlyNamespace: choices.OnlyNamespace,
		PullSecret:    choices.PullSecret,
	}
	var err error
	if settings.Registry, err = checkRegistry(choices.Registry); err != nil {
		return settings, err
	}
	if faults := validation.IsDNS1123Subdomain(choices.PullSecret); choices.PullSecret != "" && len(faults) > 0 {
		return settings, cli.MisuseErrorf("--image-pull-secret %s: %s", choices.PullSecret, faults[0])
	}
	if settings.Patches, err = readPatches(choices.Patches); err != nil {
		return settings, err
	}
	if err := checkNamespace(choices.OnlyNamespace); err != nil {
		return settings, err
	}
	for _, component := range choices.Components {
		if component == namespaced {
			return settings, cli.MisuseErrorf("component %s needs --only-namespace NAME", namespaced)
		}
		if !slices.Contains(Shared(), component) && !anyHas(features, component) {
			return settings, cli.MisuseErrorf("unknown component %q: use %s", component, strings.Join(componentsOf(features), ", "))
		}
	}
	if err := checkWithout(features, choices); err != nil {
		return settings, err
	}
	for _, text := range choices.Versions {
		if err := settings.addVersion(features, text); err != nil {
			return settings, err
		}
	}
	for _, text := range choices.Gates {
		if err := settings.addGate(features, text); err != nil {
			return settings, err
		}
	}
	return settings, nil
}

// checkWithout refuses to leave out a component that none of the features has by default.
func checkWithout(features []catalog.Feature, choices Choices) error {
	var defaults []string
	for _, feature := range features {
		defaults = append(defaults, feature.Defaults...)
	}
	for _, component := range choices.Without {
		switch {
		case len(defaults) == 0:
			return cli.MisuseErrorf("--without %s: these features have no component that is installed by default", component)
		case !slices.Contains(defaults, component):
			return cli.MisuseErrorf("--without %s: must be a component that is installed by default: use %s", component, strings.Join(defaults, ", "))
		case slices.Contains(choices.Components, component):
			return cli.MisuseErrorf("--without %s contradicts --component %s: use one of them", component, component)
		}
	}
	return nil
}

func checkNamespace(name string) error {
	if name == Namespace {
		return cli.MisuseErrorf("--only-namespace must not be %s: the operators run there", name)
	}
	if faults := validation.IsDNS1123Label(name); name != "" && len(faults) > 0 {
		return cli.MisuseErrorf("--only-namespace %s: %s", name, faults[0])
	}
	return nil
}

func (s *Settings) addVersion(features []catalog.Feature, text string) error {
	name, tag, named := strings.Cut(text, "=")
	if !named {
		name, tag = catalog.All, text
	}
	if tag == "" {
		return cli.MisuseErrorf("--version %q must have a tag, as in v0.1.0 or FEATURE=v0.1.0", text)
	}
	plain, digest, err := splitVersion(tag)
	if err != nil {
		return err
	}
	found := false
	for _, feature := range features {
		if name != catalog.All && name != feature.Name {
			continue
		}
		found = true
		if digest != "" && len(feature.Images) > 1 {
			return cli.MisuseErrorf("--version %s: %s has %d images, and a digest fits only one; use a tag, or --patch", text, feature.Name, len(feature.Images))
		}
		if !sameMinor(plain, feature.Version) {
			return cli.MisuseErrorf("this command has the manifests of %s %s, but %s is another minor version: use the command of that version",
				feature.Name, feature.Version, tag)
		}
		s.Versions[feature.Name] = tag
	}
	if !found {
		return cli.MisuseErrorf("--version %s: %s is not one of the features to install", text, name)
	}
	return nil
}

// sameMinor reports whether manifests fit images. Tags that are no versions, such as "latest", are the user's affair.
func sameMinor(tag, manifests string) bool {
	a, errA := version.ParseSemantic(tag)
	b, errB := version.ParseSemantic(manifests)
	return errA != nil || errB != nil || a.Major() == b.Major() && a.Minor() == b.Minor()
}

// addGate reads NAME=BOOL, or NAME- to make a gate unset again, for the features with managers that read it.
func (s *Settings) addGate(features []catalog.Feature, text string) error {
	setting, value, valued := strings.Cut(text, "=")
	on, err := strconv.ParseBool(value)
	forget := !valued && strings.HasSuffix(setting, "-")
	if err != nil && !forget {
		return cli.MisuseErrorf("--feature-gates %s: must be NAME=true, NAME=false or NAME-", text)
	}
	owner, name, owned := strings.Cut(strings.TrimSuffix(setting, "-"), ":")
	if !owned {
		owner, name = "", owner
	}
	found := false
	var readers []string
	for _, feature := range features {
		reads := slices.Contains(feature.Gates, name)
		if reads {
			readers = append(readers, feature.Name)
		}
		// A gate of an earlier install may be forgotten even if no manager reads it.
		if (owner == feature.Name || owner == "") && (reads || forget) {
			found = true
			s.Gates[feature.Name] = append(s.Gates[feature.Name], Gate{Name: name, On: on, Forget: forget})
		}
	}
	switch {
	case found:
		return nil
	case len(readers) > 0:
		return cli.MisuseErrorf("--feature-gates %s: %s has no such feature gate; these features have it: %s", text, owner, strings.Join(readers, ", "))
	case len(features) == 1:
		return cli.MisuseErrorf("--feature-gates %s: %s has no such feature gate; it has %s", text, features[0].Name, strings.Join(features[0].Gates, ", "))
	}
	return cli.MisuseErrorf("--feature-gates %s: these features have no such feature gate; docs/reference/flags.md lists the gates of each feature", text)
}

func anyHas(features []catalog.Feature, component string) bool {
	return slices.ContainsFunc(features, func(f catalog.Feature) bool { return slices.Contains(f.Components, component) })
}

func componentsOf(features []catalog.Feature) []string {
	all := Shared()
	for _, feature := range features {
		all = append(all, feature.Components...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Everything returns settings with every component of a feature: it renders all objects that could be installed.
func Everything(feature catalog.Feature) Settings {
	return Settings{Components: feature.Components}
}

// image returns where an image of the manifests is pulled from.
func (s Settings) image(name string) string {
	registry := s.registry()
	if registry == "" {
		return name
	}
	return fmt.Sprintf("%s/%s", registry, name)
}

// FromSomewhere refuses settings by which nodes would pull images that are not of this project: a build that is no release
// knows no registry.
func (s Settings) FromSomewhere() error {
	if s.registry() == "" {
		return cli.MisuseErrorf("this command was built from source and has no default registry: add --registry REGISTRY; the images are REGISTRY/flotilla/FEATURE-manager")
	}
	return nil
}
