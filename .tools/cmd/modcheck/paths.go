package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// PathFaults are the texts in Go files of the module that are paths out of it, one line each. A module that was downloaded
// alone has nothing around it.
func PathFaults(root fs.FS, m Module) ([]string, error) {
	var faults []string
	err := walkGo(root, m, func(name string, files *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !strings.HasPrefix(text, "../") || text == "../" {
				return true
			}
			if to := path.Join(path.Dir(name), text); to != m.Folder && !strings.HasPrefix(to, m.Folder+"/") {
				faults = append(faults, fmt.Sprintf("%s: leads out of the module, to %s", files.Position(literal.Pos()), to))
			}
			return true
		})
	})
	return faults, err
}

// walkGo visits the Go files of the module, without those of modules within.
func walkGo(root fs.FS, m Module, visit func(name string, files *token.FileSet, file *ast.File)) error {
	return fs.WalkDir(root, m.Folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != m.Folder && isModule(root, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(name, files, file)
		return nil
	})
}

func isModule(root fs.FS, folder string) bool {
	_, err := fs.Stat(root, folder+"/go.mod")
	return err == nil
}
