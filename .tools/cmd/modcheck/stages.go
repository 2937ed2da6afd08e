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

// StageFaults are the declarations of controllers that are in the file of another stage of docs/architecture.md, one line
// each. A package is a controller if it has a reconciler or fills a snapshot. Tests, and what plays a controller for them, may
// be anywhere.
func StageFaults(root fs.FS, m Module) ([]string, error) {
	packages := map[string]*controller{}
	err := walkGo(root, m, func(name string, _ *token.FileSet, file *ast.File) {
		folder := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(folder, "core/testing/") {
			return
		}
		if packages[folder] == nil {
			packages[folder] = &controller{}
		}
		packages[folder].read(name, file)
	})
	var faults []string
	for _, p := range packages {
		if p.is {
			faults = append(faults, p.faults...)
		}
	}
	slices.Sort(faults)
	return faults, err
}

// controller is a package as far as it has been read.
type controller struct {
	is     bool
	faults []string
}

func (c *controller) read(name string, file *ast.File) {
	expect := func(stage, declared, what string) {
		if path.Base(name) != stage {
			c.faults = append(c.faults, fmt.Sprintf("%s: %s %s, which belongs into %s", name, declared, what, stage))
		}
	}
	for _, declaration := range file.Decls {
		d, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		switch {
		case d.Recv != nil && d.Name.Name == "Reconcile" && takes(d, "ctrl", "reconcile"):
			c.is = true
			expect("controller.go", "Reconcile", "runs passes")
		case d.Recv == nil && d.Name.Name == "SetUp":
			expect("setup.go", "SetUp", "adds the controller to a manager")
		case returns(d, "handler", "predicate") || takes(d, "event"):
			expect("watch.go", d.Name.Name, "maps events to keys")
		}
		if fillsSnapshot(d) {
			c.is = true
			expect("snapshot.go", d.Name.Name, "fills a snapshot")
		}
	}
}

// takes reports whether the function has a parameter of a type of one of the packages.
func takes(d *ast.FuncDecl, packages ...string) bool { return hasTypeOf(d.Type.Params, packages) }

// returns reports whether the function has a result of a type of one of the packages.
func returns(d *ast.FuncDecl, packages ...string) bool { return hasTypeOf(d.Type.Results, packages) }

func hasTypeOf(fields *ast.FieldList, packages []string) bool {
	return fields != nil && slices.ContainsFunc(fields.List, func(f *ast.Field) bool {
		of := f.Type
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		s, ok := of.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		in, ok := s.X.(*ast.Ident)
		return ok && slices.Contains(packages, in.Name)
	})
}

// fillsSnapshot reports whether the function makes a snapshot of a plan that is not empty.
func fillsSnapshot(d *ast.FuncDecl) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok || len(literal.Elts) == 0 {
			return true
		}
		of := literal.Type
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		if s, ok := of.(*ast.SelectorExpr); ok && s.Sel.Name == "Snapshot" {
			found = true
		}
		return true
	})
	return found
}
