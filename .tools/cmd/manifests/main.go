// Command manifests writes the manifests that are the same in all features, and the lists of features.
//
// For each description FEATURE/config/feature.yaml of a module of go.work it fills in the templates of kustomize/templates
// and writes the files of FEATURE/config and of kustomize/overlays/FEATURE, and those that list all features. The first
// line of such a file says that it is generated; a file without that line is the feature's own and stays as it is. In
// pages of the documentation it writes the parts between two comments that name a template.
//
//	manifests [folder of go.work]
package main

import (
	"fmt"
	"maps"
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
	features, err := load(os.DirFS(root))
	if err != nil {
		return err
	}
	templates := os.DirFS(filepath.Join(root, "kustomize", "templates"))
	files, err := GenerateLists(templates, features)
	if err != nil {
		return fmt.Errorf("generate the lists of features: %w", err)
	}
	for _, feature := range features {
		own, err := Generate(templates, feature)
		if err != nil {
			return fmt.Errorf("generate the manifests of %s: %w", feature.Name, err)
		}
		maps.Copy(files, own)
	}
	for name, content := range files {
		if err := write(filepath.Join(root, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	return writePages(root, templates, features)
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
