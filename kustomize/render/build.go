package render

import (
	"fmt"
	"path"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
)

// Renderer builds kustomizations one at a time, because the library keeps state between builds. The zero value is
// ready, and all builds of a process share one.
type Renderer struct {
	building sync.Mutex
}

// Build returns the objects of the kustomization in a folder of the tree, as YAML documents in the order
// in which they can be applied.
func (r *Renderer) Build(tree Tree, folder string) (manifests []byte, err error) {
	r.building.Lock()
	defer r.building.Unlock()
	defer func() {
		// The library panics on some malformed input.
		if cause := recover(); cause != nil {
			manifests = nil
			err = fmt.Errorf("build %s: %v", folder, cause)
		}
	}()
	resources, err := krusty.MakeKustomizer(options()).Run(tree.files, path.Join("/", folder))
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	manifests, err = resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", folder, err)
	}
	return manifests, nil
}

// options returns kubectl's options, except that objects come in the order in which they can be applied.
func options() *krusty.Options {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	options.PluginConfig = types.DisabledPluginConfig()
	return options
}
