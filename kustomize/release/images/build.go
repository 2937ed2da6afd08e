package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/modfile"
)

// managerVersion is the variable of operators that the linker sets to the version, as it does main.version.
const managerVersion = "github.com/flotilla-project/flotilla/core/operator/manager.version"

// command is a program of a module that becomes an image.
type command struct {
	module  string // folder of the module, absolute
	feature string
	program string // one of programs
}

// repository returns the image's name without registry and tag.
func (c command) repository() string { return "flotilla/" + c.feature + "-" + c.program }

// programs returns the folders below cmd with the programs that become images.
func programs() []string { return []string{"manager", "agent", "quick-exit"} }

// findCommands returns the programs that become images among the modules of the workspace.
func findCommands(root string, only []string) ([]command, error) {
	file := filepath.Join(root, "go.work")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	workspace, err := modfile.ParseWork(file, data, nil)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	var found []command
	missing := slices.Clone(only)
	for _, use := range workspace.Use {
		feature := filepath.ToSlash(filepath.Clean(use.Path))
		if len(only) > 0 && !slices.Contains(only, feature) {
			continue
		}
		for _, program := range programs() {
			c := command{
				module:  filepath.Join(root, use.Path),
				feature: feature,
				program: program,
			}
			if _, err := os.Stat(filepath.Join(c.module, "cmd", program, "main.go")); err == nil {
				found = append(found, c)
				missing = slices.DeleteFunc(missing, func(name string) bool { return name == feature })
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("build images: no module of the workspace that ships a manager is called %s", strings.Join(missing, ", "))
	}
	return found, nil
}

// compile builds a package of the module for the platform and returns the binary's content.
func (o Options) compile(ctx context.Context, module, pkg, name string, platform v1.Platform) ([]byte, error) {
	out, err := o.build(ctx, module, pkg, name, platform)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("read binary %s: %w", name, err)
	}
	return data, nil
}

// build builds a package of the module for the platform and returns the binary's path. The module is built without the
// workspace, as its users build it.
func (o Options) build(ctx context.Context, module, pkg, name string, platform v1.Platform) (string, error) {
	out := filepath.Join(o.Binaries, platform.OS+"_"+platform.Architecture, name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+o.Version+" -X "+managerVersion+"="+o.Version, "-o", out, pkg)
	build.Dir = module
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	var message bytes.Buffer
	build.Stdout, build.Stderr = &message, &message
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("compile %s for %s: %w", name, platform, errors.Join(err, errors.New(strings.TrimSpace(message.String()))))
	}
	return out, nil
}

// binary is a compiled program for one platform.
type binary struct {
	platform v1.Platform
	data     []byte
}

// compileAll links the package for every platform of the options.
func (o Options) compileAll(ctx context.Context, module, pkg, name string) ([]binary, error) {
	platforms, err := parsePlatforms(o.Platforms)
	if err != nil {
		return nil, err
	}
	var all []binary
	for _, platform := range platforms { // one by one: go build uses all CPUs by itself
		data, err := o.compile(ctx, module, pkg, name, platform)
		if err != nil {
			return nil, err
		}
		all = append(all, binary{platform: platform, data: data})
	}
	return all, nil
}

// Program compiles a program of a feature for this machine and returns its path. Of the options it uses Root, Version
// and Binaries. A program that was linked for an image is not linked again.
func Program(ctx context.Context, o Options, feature, program string) (string, error) {
	o, err := o.complete()
	if err != nil {
		return "", err
	}
	platform := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	name := feature + "-" + program
	return o.build(ctx, filepath.Join(o.Root, feature), "./cmd/"+program, name, platform)
}
