package release

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/render"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

// overlays writes the archive of the kustomizations of the work tree. Its overlays name the images of the release by registry and
// digest.
func (o Options) overlays(r Release, all []images.Image) error {
	root, err := images.FindRoot()
	if err != nil {
		return err
	}
	folders, err := render.Folders(os.DirFS(root))
	if err != nil {
		return err
	}
	pins, err := overlays.Pins(o.Registry, all)
	if err != nil {
		return err
	}
	var files []packed
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		found, err := pack(name, folders[name], pins)
		if err != nil {
			return fmt.Errorf("pack the overlays: %w", err)
		}
		files = append(files, found...)
	}
	archived, err := archive(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.assets(r), "overlays-"+r.To+".tar.gz"), archived, 0o644) //nolint:gosec // for everybody
}

// pack returns the YAML files of a folder. Kustomizations of overlays get the pins of the images.
func pack(folder string, files fs.FS, pins string) ([]packed, error) {
	var all []packed
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" || strings.Contains(name, "resource_customizations/") {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if folder == "kustomize/overlays" && path.Base(name) == "kustomization.yaml" {
			content = append(content, pins...)
		}
		all = append(all, packed{path.Join(folder, name), 0o644, content})
		return nil
	})
	return all, err
}
