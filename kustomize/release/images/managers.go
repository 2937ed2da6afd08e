package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Managers builds the image flotilla/<module>-manager of every module of the workspace that has a cmd/manager, and
// flotilla/<module>-agent and flotilla/<module>-quick-exit where there are such commands, and puts them where the options
// say.
func Managers(ctx context.Context, o Options) ([]Image, error) {
	o, err := o.withDefaults(DefaultPlatforms()...)
	if err != nil {
		return nil, err
	}
	commands, err := findCommands(o.Root, o.Only)
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, c := range commands {
		stored, err := o.manager(ctx, c)
		if err != nil {
			return all, err
		}
		all = append(all, stored...)
	}
	return all, nil
}

func (o Options) manager(ctx context.Context, c command) ([]Image, error) {
	title, path := c.feature+"-"+c.program, "/"+c.program
	binaries, err := o.compileAll(ctx, c.module, "./cmd/"+c.program, title)
	if err != nil {
		return nil, err
	}
	a, err := o.assemble(binaries, func(data []byte) content {
		return content{
			title:  title,
			layers: [][]file{{{path: path, mode: 0o755, data: data}}},
			entry:  path,
		}
	})
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", title, err)
	}
	tag := o.Tag
	if tag == "" {
		if tag, err = tagOfManifests(c.module); err != nil {
			return nil, fmt.Errorf("choose the tag of image %s: %w", title, err)
		}
	}
	return o.store(ctx, c.repository(), a, cmp.Or(tag, o.Version))
}

// tagOfManifests returns the tag that the manifests of a module name, empty if it has none.
func tagOfManifests(module string) (string, error) {
	text, err := os.ReadFile(filepath.Join(module, "config", "default", "kustomization.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var manifests struct {
		Images []struct {
			NewTag string `json:"newTag"`
		} `json:"images"`
	}
	if err := yaml.Unmarshal(text, &manifests); err != nil || len(manifests.Images) == 0 {
		return "", err
	}
	return manifests.Images[0].NewTag, nil
}
