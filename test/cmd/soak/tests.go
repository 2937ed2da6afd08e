package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is a package with tests that play random worlds.
type suite struct {
	dir, path string
	tests     []string
}

// workspace returns the folders of all modules.
func workspace(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules of the workspace: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// findSuites returns the suites of a module.
func findSuites(ctx context.Context, module string) ([]suite, error) {
	list := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	list.Dir = module
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
	}
	var suites []suite
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return suites, nil
		} else if err != nil {
			return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
		}
		tests, err := findTests(p.Dir, append(p.TestGoFiles, p.XTestGoFiles...))
		if err != nil {
			return nil, err
		}
		if len(tests) > 0 {
			suites = append(suites, suite{dir: p.Dir, path: p.ImportPath, tests: tests})
		}
	}
}

// players returns the functions that play random worlds.
func players() []string {
	return []string{"seeds.Each", "simulate.Walk", "simulate.Explore", "simulate.CheckFaults"}
}

// findTests returns the tests that play worlds: those that call a player, also indirectly.
func findTests(dir string, files []string) ([]string, error) {
	var names []string
	uses := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			uses[f.Name.Name] = append(uses[f.Name.Name], namesIn(f.Body)...)
			if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	var tests []string
	for _, name := range names {
		if leads(name, uses, map[string]bool{}) {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

func namesIn(body ast.Node) []string {
	var names []string
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names = append(names, x.Name+"."+n.Sel.Name)
			}
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}

func leads(name string, uses map[string][]string, seen map[string]bool) bool {
	if slices.Contains(players(), name) {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	for _, used := range uses[name] {
		if leads(used, uses, seen) {
			return true
		}
	}
	return false
}
