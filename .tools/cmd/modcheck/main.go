// Command modcheck verifies what must hold in and between the modules of the repository.
//
// It reads go.work, the go.mod files that it names, what the packages of core import, how reasons of conditions, waits
// and events are declared, which paths lead out of a module, which packages of features are public, which files have the
// stages of controllers, and which ones have the tests that need an API server; it prints every fault and exits with 1 when
// there is one. It changes nothing.
//
//	modcheck [folder of go.work]
package main

import (
	"fmt"
	"io/fs"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	faults, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "modcheck:", err)
		os.Exit(1)
	}
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

func check(root fs.FS) ([]string, error) {
	workspace, err := Load(root)
	if err != nil {
		return nil, err
	}
	faults := workspace.Faults()
	for _, m := range workspace.Modules {
		if m.Folder == "core" {
			more, err := LayerFaults(root, m)
			if err != nil {
				return nil, fmt.Errorf("check the layers of core: %w", err)
			}
			faults = append(faults, more...)
		}
		if m.combines() {
			continue
		}
		for _, rule := range []func(fs.FS, Module) ([]string, error){ReasonFaults, PathFaults, RoomFaults, ServerTestFaults, StageFaults} {
			more, err := rule(root, m)
			if err != nil {
				return nil, fmt.Errorf("check the code of %s: %w", m.Folder, err)
			}
			faults = append(faults, more...)
		}
	}
	return faults, nil
}
