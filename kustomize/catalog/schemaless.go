package catalog

import (
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"
)

// WithoutSchemas returns the feature with CRDs that have no schemas. It is for those who render a feature many times and look
// at the other objects: kustomize needs most of its time for the schemas.
func (f Feature) WithoutSchemas() (Feature, error) {
	files, err := fs.Glob(f.files, "crd/*.yaml")
	if err != nil {
		return f, fmt.Errorf("look for the CRDs of %s: %w", f.Name, err)
	}
	replaced := replacedFiles{FS: f.files, by: map[string][]byte{}}
	for _, file := range files {
		text, err := fs.ReadFile(f.files, file)
		if err != nil {
			return f, fmt.Errorf("read the CRDs of %s: %w", f.Name, err)
		}
		if replaced.by[file], err = withoutSchemas(text); err != nil {
			return f, fmt.Errorf("parse %s of %s: %w", file, f.Name, err)
		}
	}
	f.files, f.Schemaless = replaced, true
	return f, nil
}

// withoutSchemas drops the schemas of a CRD. A file of another kind stays as it is.
func withoutSchemas(text []byte) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	spec, _ := object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		if fields, is := version.(map[string]any); is {
			delete(fields, "schema")
		}
	}
	if len(versions) == 0 {
		return text, nil
	}
	return yaml.Marshal(object)
}

// replacedFiles are files, some with another content.
type replacedFiles struct {
	fs.FS
	by map[string][]byte
}

// ReadFile returns the content of a file.
func (r replacedFiles) ReadFile(name string) ([]byte, error) {
	if text, is := r.by[name]; is {
		return text, nil
	}
	return fs.ReadFile(r.FS, name)
}
