// Command argocd writes the patch of Argo CD's ConfigMap from the scripts in resource_customizations.
//
//	argocd [root of the repository]
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/flotilla-project/flotilla/test/argocd"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(filepath.Join(root, "kustomize", "argocd")); err != nil {
		fmt.Fprintln(os.Stderr, "argocd:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	all, err := argocd.Customizations(os.DirFS(filepath.Join(folder, "resource_customizations")))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "health.yaml"), []byte(argocd.ConfigMap(all)), 0o644); err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	return nil
}
