package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// ServerTestFaults are the test files of the module whose names hide that they need an API server, or promise it in vain, one
// line each. A test needs a server if it uses testenv.Environment, directly or by declarations of its package.
func ServerTestFaults(root fs.FS, m Module) ([]string, error) {
	packages := map[string]*testPackage{}
	err := walkGo(root, m, func(name string, _ *token.FileSet, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		key := path.Dir(name) + " " + file.Name.Name
		if packages[key] == nil {
			packages[key] = &testPackage{uses: map[string]map[string]bool{}, tests: map[string][]string{}}
		}
		packages[key].read(name, file)
	})
	var faults []string
	for _, p := range packages {
		faults = append(faults, p.faults()...)
	}
	slices.Sort(faults)
	return faults, err
}

// server is the name under which declarations use a server.
const server = "testenv.Environment"

// testPackage is the tests of a package.
type testPackage struct {
	uses  map[string]map[string]bool // names that a declaration uses; a type uses what its methods do
	tests map[string][]string        // functions that package testing calls, by file
}

func (p *testPackage) read(name string, file *ast.File) {
	p.tests[name] = nil
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && isTest(d.Name.Name) {
				p.tests[name] = append(p.tests[name], d.Name.Name)
			}
			p.use(declaredName(d), d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				for _, declared := range namesOf(spec) {
					p.use(declared, spec)
				}
			}
		}
	}
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// declaredName returns the name of a function, or of the type that has the method.
func declaredName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		default:
			return typeName(t)
		}
	}
}

func namesOf(spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
	}
	return names
}

// use records which names of the package the node uses. Names of fields and methods are none of them.
func (p *testPackage) use(declared string, in ast.Node) {
	used := p.uses[declared]
	if used == nil {
		used = map[string]bool{}
		p.uses[declared] = used
	}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			used[n.Name] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				used[x.Name+"."+n.Sel.Name] = true
			}
			ast.Inspect(n.X, visit)
			return false
		case *ast.KeyValueExpr:
			if _, isField := n.Key.(*ast.Ident); isField {
				ast.Inspect(n.Value, visit)
				return false
			}
		}
		return true
	}
	ast.Inspect(in, visit)
}

// needServer returns the declarations that use a server.
func (p *testPackage) needServer() map[string]bool {
	need := map[string]bool{server: true}
	for before := 0; before != len(need); {
		before = len(need)
		for declared, used := range p.uses {
			for name := range maps.Keys(used) {
				if need[name] {
					need[declared] = true
				}
			}
		}
	}
	return need
}

func (p *testPackage) faults() []string {
	need := p.needServer()
	var faults []string
	for name, tests := range p.tests {
		i := slices.IndexFunc(tests, func(test string) bool { return need[test] })
		promised := strings.HasSuffix(name, "_integration_test.go") || path.Base(name) == "suite_test.go"
		switch {
		case i >= 0 && !promised:
			faults = append(faults, fmt.Sprintf("%s: %s needs an API server, which files show that are called *_integration_test.go or suite_test.go", name, tests[i]))
		case i < 0 && strings.HasSuffix(name, "_integration_test.go"):
			faults = append(faults, name+": no test needs an API server, and the name shows one")
		}
	}
	return faults
}
