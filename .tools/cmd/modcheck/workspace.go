package main

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/mod/modfile"
)

// Module is one module of the workspace.
type Module struct {
	// Folder is relative to go.work, such as "core" or "daemon/api".
	Folder string
	File   *modfile.File
	// Feature means that it has the description of a feature.
	Feature bool
}

// Path returns the module's path.
func (m Module) Path() string { return m.File.Module.Mod.Path }

// combines reports whether the module combines features or tests them, or is within one that does.
func (m Module) combines() bool {
	top, _, _ := strings.Cut(m.Folder, "/")
	return top == "kustomize" || top == "test"
}

// Workspace is what go.work names.
type Workspace struct {
	// Go is the go directive of go.work.
	Go string
	// Toolchain is the toolchain of go.work, such as "go1.26.8".
	Toolchain string
	Modules   []Module
}

// Load reads go.work and the go.mod files that it uses.
func Load(root fs.FS) (Workspace, error) {
	content, err := fs.ReadFile(root, "go.work")
	if err != nil {
		return Workspace{}, fmt.Errorf("read go.work: %w", err)
	}
	work, err := modfile.ParseWork("go.work", content, nil)
	if err != nil {
		return Workspace{}, fmt.Errorf("parse go.work: %w", err)
	}
	var workspace Workspace
	if work.Go != nil {
		workspace.Go = work.Go.Version
	}
	if work.Toolchain != nil {
		workspace.Toolchain = work.Toolchain.Name
	}
	for _, use := range work.Use {
		module, err := loadModule(root, path.Clean(use.Path))
		if err != nil {
			return Workspace{}, err
		}
		workspace.Modules = append(workspace.Modules, module)
	}
	return workspace, nil
}

func loadModule(root fs.FS, folder string) (Module, error) {
	name := path.Join(folder, "go.mod")
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return Module{}, fmt.Errorf("read %s: %w", name, err)
	}
	file, err := modfile.Parse(name, content, nil)
	if err != nil {
		return Module{}, fmt.Errorf("parse %s: %w", name, err)
	}
	if file.Module == nil {
		return Module{}, fmt.Errorf("parse %s: there is no module line", name)
	}
	_, err = fs.Stat(root, path.Join(folder, "config", "feature.yaml"))
	return Module{
		Folder:  folder,
		File:    file,
		Feature: err == nil,
	}, nil
}
