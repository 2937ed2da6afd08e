package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Faults returns all violations of the rules between modules, one line each.
func (w Workspace) Faults() []string {
	var faults []string
	for _, m := range w.Modules {
		faults = append(faults, w.goDirective(m)...)
		faults = append(faults, w.toolchain(m)...)
		faults = append(faults, w.replaces(m)...)
		faults = append(faults, w.catalog(m)...)
		faults = append(faults, w.features(m)...)
	}
	return append(faults, w.versions()...)
}

// goDirective checks that the go directive is the same everywhere, so that no module is built by other rules.
func (w Workspace) goDirective(m Module) []string {
	have := ""
	if m.File.Go != nil {
		have = m.File.Go.Version
	}
	if have == w.Go {
		return nil
	}
	return []string{fmt.Sprintf("%s: go directive is %q, go.work has %q", m.Folder, have, w.Go)}
}

// toolchain checks that the toolchain line is the same everywhere. Managers are linked without the workspace, so one
// module that lacks the line would ship the standard library of an older release.
func (w Workspace) toolchain(m Module) []string {
	have := ""
	if m.File.Toolchain != nil {
		have = m.File.Toolchain.Name
	}
	if have == w.Toolchain {
		return nil
	}
	return []string{fmt.Sprintf("%s: toolchain is %q, go.work has %q", m.Folder, have, w.Toolchain)}
}

// replaces checks that every sibling that a module is built from is the one of this tree, and that nothing else is replaced.
func (w Workspace) replaces(m Module) []string {
	var faults []string
	replaced := map[string]string{}
	for _, r := range m.File.Replace {
		replaced[r.Old.Path] = r.New.Path
		if _, ok := w.sibling(r.Old.Path); !ok {
			faults = append(faults, fmt.Sprintf("%s: replaces %s, which is no sibling", m.Folder, r.Old.Path))
		}
	}
	for _, sibling := range w.builtFrom(m) {
		to, ok := replaced[sibling.Path()]
		switch {
		case !ok:
			faults = append(faults, fmt.Sprintf("%s: requires its sibling %s without a replace, add to %s/go.mod: replace %s => %s",
				m.Folder, sibling.Folder, m.Folder, sibling.Path(), strings.Repeat("../", strings.Count(m.Folder, "/")+1)+sibling.Folder))
		case path.Join(m.Folder, to) != sibling.Folder:
			faults = append(faults, fmt.Sprintf("%s: replaces its sibling %s by %s", m.Folder, sibling.Folder, to))
		}
	}
	return faults
}

// builtFrom returns the siblings that a module requires, and those that these require: go heeds the replaces of the module
// alone that it builds.
func (w Workspace) builtFrom(m Module) []Module {
	known := map[string]bool{m.Folder: true}
	var found []Module
	for next := []Module{m}; len(next) > 0; next = next[1:] {
		for _, r := range next[0].File.Require {
			if sibling, ok := w.sibling(r.Mod.Path); ok && !known[sibling.Folder] {
				known[sibling.Folder] = true
				found = append(found, sibling)
				next = append(next, sibling)
			}
		}
	}
	return found
}

// catalog checks that kustomize requires every feature, whose manifests its catalog embeds, and so does test, which reads the
// catalog.
func (w Workspace) catalog(m Module) []string {
	if m.Folder != "kustomize" && m.Folder != "test" {
		return nil
	}
	var faults []string
	for _, feature := range w.Modules {
		required := slices.ContainsFunc(m.File.Require, func(r *modfile.Require) bool { return r.Mod.Path == feature.Path() })
		if feature.Feature && !required {
			faults = append(faults, fmt.Sprintf("%s: does not require feature %s, add to %s/go.mod: require %s v0.1.0, and replace %s => ../%s",
				m.Folder, feature.Folder, m.Folder, feature.Path(), feature.Path(), feature.Folder))
		}
	}
	return faults
}

// features checks that features require core and modules of API types, but not each other, and that core requires only
// its own API types. Modules that combine or test features may require all.
func (w Workspace) features(m Module) []string {
	if m.combines() {
		return nil
	}
	var faults []string
	for _, r := range m.File.Require {
		sibling, ok := w.sibling(r.Mod.Path)
		public := sibling.Folder == "core" || path.Base(sibling.Folder) == "api"
		own := sibling.Folder == "core/api"
		if ok && !own && (m.Folder == "core" || path.Base(m.Folder) == "api" || !public) {
			faults = append(faults, fmt.Sprintf("%s: may not require %s", m.Folder, sibling.Folder))
		}
	}
	return faults
}

// versions checks that aligned libraries have the version of the first module that requires them.
func (w Workspace) versions() []string {
	var faults []string
	first := map[string]Module{}
	version := map[string]string{}
	for _, m := range w.Modules {
		for _, r := range m.File.Require {
			if !isAligned(r.Mod.Path) {
				continue
			}
			known, ok := version[r.Mod.Path]
			if !ok {
				version[r.Mod.Path], first[r.Mod.Path] = r.Mod.Version, m
			} else if known != r.Mod.Version {
				faults = append(faults, fmt.Sprintf("%s: requires %s %s, %s requires %s",
					m.Folder, r.Mod.Path, r.Mod.Version, first[r.Mod.Path].Folder, known))
			}
		}
	}
	return faults
}

// isAligned reports whether a library must have one version in the whole repository: its objects cross the borders of
// our modules.
func isAligned(module string) bool {
	switch module {
	case "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/apiextensions-apiserver",
		"k8s.io/component-base", "sigs.k8s.io/controller-runtime":
		return true
	}
	return false
}

func (w Workspace) sibling(module string) (Module, bool) {
	i := slices.IndexFunc(w.Modules, func(m Module) bool { return m.Path() == module })
	if i < 0 {
		return Module{}, false
	}
	return w.Modules[i], true
}
