package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// rooms returns the folders that a feature may have packages in. All but internal are public; the API types are a module of
// their own.
func rooms() []string { return []string{"cmd", "config", "internal", "setup", "whatif"} }

// RoomFaults are the packages of a feature that are in none of the rooms, one line each. What is public can be imported by
// anybody and is kept for years.
func RoomFaults(root fs.FS, m Module) ([]string, error) {
	if m.Folder == "core" || path.Base(m.Folder) == "api" {
		return nil, nil
	}
	var faults []string
	err := walkGo(root, m, func(name string, _ *token.FileSet, _ *ast.File) {
		room, _, _ := strings.Cut(strings.TrimPrefix(name, m.Folder+"/"), "/")
		if !slices.Contains(rooms(), room) {
			faults = append(faults, fmt.Sprintf("%s: packages of a feature are in %s", name, strings.Join(rooms(), ", ")))
		}
	})
	return faults, err
}
