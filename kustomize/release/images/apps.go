package images

import (
	"context"
	"fmt"
	"path/filepath"
)

const (
	// DemoApp is the repository of the demo application's images.
	DemoApp = "flotilla/demo-app"
	// crashTag is the tag of a demo image with a process that ends with an error as soon as it starts.
	crashTag = "crash"
	// aliasSuffix after a version's tag makes a second tag for the same content.
	aliasSuffix = "-alias"
)

// Apps pushes the demo application's images to the registry, for this machine's architecture: one for each version,
// under its own tag and under that tag with aliasSuffix, and the one with crashTag.
func Apps(ctx context.Context, registry string, versions ...string) ([]Image, error) {
	return AppsTo(ctx, Options{Registry: registry}, versions...)
}

// AppsTo is Apps with a choice of registry, folder and platforms. It ignores Only, Version and Tag of the options.
func AppsTo(ctx context.Context, o Options, versions ...string) ([]Image, error) {
	o, err := o.withDefaults(localPlatform())
	if err != nil {
		return nil, err
	}
	o.Version = "shared" // the versions differ only in a file
	binaries, err := o.compileAll(ctx, filepath.Join(o.Root, "kustomize", "release"), "./cmd/demo-app", "demo-app")
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, version := range versions {
		stored, err := o.app(ctx, binaries, version, nil, version, version+aliasSuffix)
		if err != nil {
			return all, err
		}
		all = append(all, stored...)
	}
	broken := file{path: "/app/crash", mode: 0o644}
	stored, err := o.app(ctx, binaries, crashTag, []file{broken}, crashTag)
	return append(all, stored...), err
}

// app builds one image of the demo application: the binary that all versions share and a small layer of its own, which
// holds the version.
func (o Options) app(ctx context.Context, binaries []binary, version string, extra []file, tags ...string) ([]Image, error) {
	o.Version = version
	own := append([]file{{
		path: "/app/version",
		mode: 0o644,
		data: []byte(version + "\n"),
	}}, extra...)
	a, err := o.assemble(binaries, func(data []byte) content {
		shared := []file{{path: "/app/app", mode: 0o755, data: data}}
		return content{
			title:  "demo-app",
			layers: [][]file{shared, own},
			entry:  "/app/app",
		}
	})
	if err != nil {
		return nil, fmt.Errorf("build image %s:%s: %w", DemoApp, version, err)
	}
	return o.store(ctx, DemoApp, a, tags...)
}
