package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// manifests are the files of a module that name its version: the description that make generate reads, and the kustomization that it
// writes or that the module has of its own.
func manifests() []string {
	return []string{"config/feature.yaml", "config/default/kustomization.yaml"}
}

// versions are the lines of these files that do, up to the version.
var versions = regexp.MustCompile(`(?m)^( *(?:version|newTag|app\.kubernetes\.io/version): )v\S+`)

// install has the manifests of the release's module name its version: images are pulled by it, and status compares it.
func (r Release) install(root string) error {
	for _, name := range manifests() {
		file := filepath.Join(root, r.Module, filepath.FromSlash(name))
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
		raised := versions.ReplaceAll(text, []byte("${1}"+r.To))
		if err := os.WriteFile(file, raised, 0o644); err != nil { //nolint:gosec // readable as the rest of the work tree
			return fmt.Errorf("write the manifests: %w", err)
		}
	}
	return nil
}
