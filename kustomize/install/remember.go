package install

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// SettingsAnnotation is where the Deployment of a manager has the settings that it was installed with.
const SettingsAnnotation = "apps.kruise.io/installed-with"

// memory has the remembered settings of one feature. The namespace that a manager is restricted to is not among them: it is
// read from the manager itself, so that no way to install widens its rights.
type memory struct {
	Registry string `json:"registry,omitempty"`
	// Version is the tag that was chosen for the images, Manifests the version of the manifests that it was chosen for.
	Version    string   `json:"version,omitempty"`
	Manifests  string   `json:"manifests,omitempty"`
	Components []string `json:"components,omitempty"`
	Without    []string `json:"without,omitempty"`
	Gates      []Gate   `json:"gates,omitempty"`
	PullSecret string   `json:"imagePullSecret,omitempty"`
	Patches    []string `json:"patches,omitempty"`
}

// remember writes the settings down in the manager's Deployment. Without any, nothing is written.
func remember(objects []*unstructured.Unstructured, feature catalog.Feature, settings Settings) error {
	kept := memory{
		Registry:   settings.Registry,
		Components: settings.componentsFor(feature),
		Without:    settings.withoutFor(feature),
		Gates:      settings.Gates[feature.Name],
		PullSecret: settings.PullSecret,
		Patches:    settings.Patches,
	}
	if tag, chosen := settings.Versions[feature.Name]; chosen {
		kept.Version, kept.Manifests = tag, feature.Version
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("write the settings of %s: %w", feature.Name, err)
	}
	if string(text) == "{}" {
		return nil
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == feature.Name+"-manager" {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[SettingsAnnotation] = string(text)
			object.SetAnnotations(annotations)
		}
	}
	return nil
}

// Recall returns the settings that a feature was installed with, read from the Deployment of its manager, and the settings
// among them that do not fit these manifests, one sentence each. The Deployment may be nil.
func Recall(feature catalog.Feature, manager *unstructured.Unstructured) (earlier Settings, lost []string, err error) {
	if manager == nil {
		return Settings{}, nil, nil
	}
	earlier.OnlyNamespace = restrictedTo(manager)
	text, found := manager.GetAnnotations()[SettingsAnnotation]
	if !found {
		return earlier, nil, nil
	}
	var kept memory
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return Settings{}, nil, fmt.Errorf("read the settings of the last install of %s (--defaults discards them): annotation %s of %s: %w",
			feature.Name, SettingsAnnotation, apply.Describe(manager), err)
	}
	earlier.Registry = kept.Registry
	earlier.PullSecret = kept.PullSecret
	earlier.Patches = kept.Patches
	for _, gate := range kept.Gates {
		if !slices.Contains(feature.Gates, gate.Name) {
			lost = append(lost, fmt.Sprintf("its operator has no feature gate %s", gate.Name))
			continue
		}
		if earlier.Gates == nil {
			earlier.Gates = map[string][]Gate{}
		}
		earlier.Gates[feature.Name] = append(earlier.Gates[feature.Name], gate)
	}
	switch {
	case kept.Version == "":
	case kept.Manifests == feature.Version:
		earlier.Versions = map[string]string{feature.Name: kept.Version}
	default:
		lost = append(lost, fmt.Sprintf("--version=%s was set for manifests %s, and these are %s", kept.Version, kept.Manifests, feature.Version))
	}
	for _, component := range kept.Components {
		if !fits(feature, component) {
			lost = append(lost, fmt.Sprintf("component %s no longer exists", component))
			continue
		}
		earlier.Components = append(earlier.Components, component)
	}
	for _, component := range kept.Without {
		if !slices.Contains(feature.Defaults, component) {
			lost = append(lost, fmt.Sprintf("--without=%s: no component of this name is installed by default", component))
			continue
		}
		earlier.Without = append(earlier.Without, component)
	}
	return earlier, lost, nil
}

// Over returns the settings of one feature: these, and the settings of an earlier install that these do not set. Components
// and gates are added to earlier ones. A component that was left out stays out until it is named.
func (s Settings) Over(feature catalog.Feature, earlier Settings) Settings {
	merged := Settings{
		Registry:      cmp.Or(s.Registry, earlier.Registry),
		PullSecret:    cmp.Or(s.PullSecret, earlier.PullSecret),
		OnlyNamespace: cmp.Or(s.OnlyNamespace, earlier.OnlyNamespace),
		Components:    slices.Clone(earlier.Components),
		Versions:      map[string]string{},
		Gates:         map[string][]Gate{},
		Patches:       s.Patches,
	}
	if len(merged.Patches) == 0 {
		merged.Patches = earlier.Patches
	}
	for _, versions := range []map[string]string{earlier.Versions, s.Versions} {
		if tag, chosen := versions[feature.Name]; chosen {
			merged.Versions[feature.Name] = tag
		}
	}
	for _, component := range s.componentsFor(feature) {
		if !slices.Contains(merged.Components, component) {
			merged.Components = append(merged.Components, component)
		}
	}
	for _, component := range feature.Defaults {
		again := slices.Contains(s.Components, component)
		if slices.Contains(s.Without, component) || slices.Contains(earlier.Without, component) && !again {
			merged.Without = append(merged.Without, component)
		}
	}
	gates := slices.DeleteFunc(slices.Clone(earlier.Gates[feature.Name]), func(old Gate) bool {
		return slices.ContainsFunc(s.Gates[feature.Name], func(g Gate) bool { return g.Name == old.Name })
	})
	for _, gate := range s.Gates[feature.Name] {
		if !gate.Forget {
			gates = append(gates, gate)
		}
	}
	if len(gates) > 0 {
		merged.Gates[feature.Name] = gates
	}
	return merged
}

// componentsFor returns the components that are for a feature, in the order given, apart from those that it has by default.
func (s Settings) componentsFor(feature catalog.Feature) []string {
	var all []string
	for _, component := range s.Components {
		if fits(feature, component) && !slices.Contains(feature.Defaults, component) {
			all = append(all, component)
		}
	}
	return all
}

// withoutFor returns the components that are left out of a feature.
func (s Settings) withoutFor(feature catalog.Feature) []string {
	var all []string
	for _, component := range feature.Defaults {
		if slices.Contains(s.Without, component) {
			all = append(all, component)
		}
	}
	return all
}

// fits reports whether a feature can have a component.
func fits(feature catalog.Feature, component string) bool {
	return slices.Contains(Shared(), component) || slices.Contains(feature.Components, component)
}

// flags returns the settings of a feature as a user would give them.
func (s Settings) flags(feature catalog.Feature) []string {
	var all []string
	if s.Registry != "" {
		all = append(all, "--registry="+s.Registry)
	}
	if tag, chosen := s.Versions[feature.Name]; chosen {
		all = append(all, "--version="+tag)
	}
	for _, component := range s.componentsFor(feature) {
		all = append(all, "--component="+component)
	}
	for _, component := range s.withoutFor(feature) {
		all = append(all, "--without="+component)
	}
	for _, gate := range s.Gates[feature.Name] {
		all = append(all, fmt.Sprintf("--feature-gates=%s=%t", gate.Name, gate.On))
	}
	if s.PullSecret != "" {
		all = append(all, "--image-pull-secret="+s.PullSecret)
	}
	for _, patch := range s.Patches {
		to := target(patch)
		all = append(all, fmt.Sprintf("--patch=(%s %s)", to.GetKind(), to.GetName()))
	}
	if s.OnlyNamespace != "" {
		all = append(all, "--only-namespace="+s.OnlyNamespace)
	}
	return all
}

// recall returns the settings of a feature with the settings that an earlier install chose, and prints the latter.
func (i *installer) recall(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) (Settings, error) {
	if i.defaults {
		return i.settings.Over(feature, Settings{}), nil
	}
	manager, err := cluster.Get(ctx, named("apps/v1", "Deployment", feature.Name+"-manager"))
	if err != nil {
		return Settings{}, err
	}
	earlier, lost, err := Recall(feature, manager)
	if err != nil {
		return Settings{}, err
	}
	merged := i.settings.Over(feature, earlier)
	given := i.settings.flags(feature)
	kept := slices.DeleteFunc(merged.flags(feature), func(flag string) bool { return slices.Contains(given, flag) })
	if len(kept) > 0 {
		fmt.Fprintf(i.streams.Out, "%s keeps %s (--defaults discards these settings)\n", feature.Name, strings.Join(kept, " "))
	}
	for _, sentence := range lost {
		text := fmt.Sprintf("%s: not kept: %s", feature.Name, sentence)
		i.report.Warn(text)
		fmt.Fprintln(i.streams.Out, text)
	}
	return merged, nil
}
