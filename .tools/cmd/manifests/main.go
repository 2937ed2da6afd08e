// Command manifests writes the manifests that are the same in all features.
//
// For each description FEATURE/config/feature.yaml it fills in the templates of kustomize/templates and writes the
// files of FEATURE/config and of kustomize/overlays/FEATURE. The first line of such a file says that it is generated; a
// file without that line is the feature's own and stays as it is.
//
//	manifests [folder of go.work]
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	descriptions, err := filepath.Glob(filepath.Join(root, "*", "config", "feature.yaml"))
	if err != nil {
		return fmt.Errorf("look for features: %w", err)
	}
	templates := os.DirFS(filepath.Join(root, "kustomize", "templates"))
	for _, description := range descriptions {
		feature, err := load(description)
		if err != nil {
			return err
		}
		files, err := Generate(templates, feature)
		if err != nil {
			return fmt.Errorf("generate the manifests of %s: %w", feature.Name, err)
		}
		for name, content := range files {
			if err := write(filepath.Join(root, filepath.FromSlash(name)), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads a description. The feature has the name of its module's folder.
func load(file string) (Feature, error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return Feature{}, fmt.Errorf("find %s: %w", file, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Feature{}, fmt.Errorf("read the description: %w", err)
	}
	feature, err := Parse(filepath.Base(filepath.Dir(filepath.Dir(absolute))), text)
	if err != nil {
		return Feature{}, fmt.Errorf("parse %s: %w", file, err)
	}
	return feature, nil
}

// write writes the content unless the file is the feature's own.
func write(file, content string) error {
	present, err := os.ReadFile(file)
	if err == nil && !IsGenerated(string(present)) {
		return nil
	}
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read what is there: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", file, err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write a manifest: %w", err)
	}
	return nil
}
