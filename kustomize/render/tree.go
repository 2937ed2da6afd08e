package render

import (
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Tree is the repository's layout in memory. Kustomizations refer to each other by relative paths, so each file has the
// path that it has in the repository.
type Tree struct {
	files filesys.FileSystem
}

// NewTree copies the files below each of the folders, such as "cloneset/config", into one tree.
func NewTree(folders map[string]fs.FS) (Tree, error) {
	tree := Tree{files: filesys.MakeFsInMemory()}
	for folder, files := range folders {
		if err := tree.add(folder, files); err != nil {
			return Tree{}, fmt.Errorf("lay out %s: %w", folder, err)
		}
	}
	return tree, nil
}

func (t Tree) add(folder string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return t.files.WriteFile(path.Join("/", folder, name), content)
	})
}

// Add writes one more file into the tree.
func (t Tree) Add(name string, content []byte) error {
	return t.files.WriteFile(path.Join("/", name), content)
}

// Folders returns the kustomizations of a work tree, for NewTree: the shared ones, the overlays and the config of each
// module that has one.
func Folders(repository fs.FS) (map[string]fs.FS, error) {
	configs, err := fs.Glob(repository, "*/config/default")
	if err != nil {
		return nil, fmt.Errorf("look for configs: %w", err)
	}
	names := []string{"kustomize/argocd", "kustomize/base", "kustomize/components", "kustomize/overlays"}
	for _, config := range configs {
		names = append(names, path.Dir(config))
	}
	folders := map[string]fs.FS{}
	for _, name := range names {
		if folders[name], err = fs.Sub(repository, name); err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
	}
	return folders, nil
}
