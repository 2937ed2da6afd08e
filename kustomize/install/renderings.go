package install

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// renderings keeps the objects of each kustomization that was built. kustomize needs a second for the CRDs of a feature, and a
// takeover asks for the same objects in its plan, its installation and its checks.
type renderings struct {
	lock sync.Mutex
	by   map[rendering][]*unstructured.Unstructured
}

// rendering names a kustomization that was built.
type rendering struct {
	feature       string
	schemaless    bool
	kustomization string
}

var rendered = renderings{by: map[rendering][]*unstructured.Unstructured{}} //nolint:gochecknoglobals // what is built of the same text and the embedded manifests is always the same

// of returns copies of the objects of a feature with this kustomization.
func (r *renderings) of(feature catalog.Feature, kustomization []byte) ([]*unstructured.Unstructured, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	key := rendering{
		feature:       feature.Name,
		schemaless:    feature.Schemaless,
		kustomization: string(kustomization),
	}
	objects, has := r.by[key]
	if !has {
		var err error
		if objects, err = layOut(feature, kustomization); err != nil {
			return nil, err
		}
		r.by[key] = objects
	}
	copies := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		copies[i] = object.DeepCopy()
	}
	return copies, nil
}

// layOut builds a kustomization as if it was in a folder next to the modules.
func layOut(feature catalog.Feature, kustomization []byte) ([]*unstructured.Unstructured, error) {
	tree, err := catalog.Tree(feature)
	if err != nil {
		return nil, fmt.Errorf("lay out %s: %w", feature.Name, err)
	}
	if err := tree.Add(folder+"/kustomization.yaml", kustomization); err != nil {
		return nil, fmt.Errorf("lay out %s: %w", feature.Name, err)
	}
	objects, err := build(tree, folder)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", feature.Name, err)
	}
	return objects, nil
}
