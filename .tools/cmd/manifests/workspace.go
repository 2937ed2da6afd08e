package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// load reads the descriptions of the features, which are the modules of go.work with one. Workloads come first, each part by
// name.
func load(root fs.FS) ([]Feature, error) {
	modules, err := modulesOf(root)
	if err != nil {
		return nil, err
	}
	descriptions, err := fs.Glob(root, "*/config/feature.yaml")
	if err != nil {
		return nil, fmt.Errorf("look for features: %w", err)
	}
	var features []Feature
	for _, description := range descriptions {
		name, _, _ := strings.Cut(description, "/")
		if !slices.Contains(modules, name) {
			return nil, fmt.Errorf("%s: go.work lacks the module, add: use ./%s", description, name)
		}
		feature, err := loadFeature(root, name, description)
		if err != nil {
			return nil, err
		}
		features = append(features, feature)
	}
	slices.SortStableFunc(features, func(a, b Feature) int {
		switch {
		case a.Workload == b.Workload:
			return 0
		case a.Workload:
			return -1
		}
		return 1
	})
	return features, nil
}

// loadFeature reads a description and the path of its module.
func loadFeature(root fs.FS, name, description string) (Feature, error) {
	text, err := fs.ReadFile(root, description)
	if err != nil {
		return Feature{}, fmt.Errorf("read the description: %w", err)
	}
	feature, err := Parse(name, text)
	if err != nil {
		return Feature{}, fmt.Errorf("parse %s: %w", description, err)
	}
	module, err := fs.ReadFile(root, path.Join(name, "go.mod"))
	if err != nil {
		return Feature{}, fmt.Errorf("read the module of %s: %w", name, err)
	}
	feature.Module = modfile.ModulePath(module)
	return feature, nil
}

// modulesOf returns the folders of the modules of the workspace.
func modulesOf(root fs.FS) ([]string, error) {
	text, err := fs.ReadFile(root, "go.work")
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, fmt.Errorf("parse the workspace: %w", err)
	}
	var folders []string
	for _, use := range work.Use {
		folders = append(folders, path.Clean(use.Path))
	}
	return folders, nil
}
