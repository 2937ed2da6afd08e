package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// layer is a folder of core.
type layer struct {
	name string
	// above are the layers that its packages may import besides their own layer.
	above []string
}

// layers returns the layers of docs/architecture.md. Test code may import all of them, and no layer may import test
// code.
func layers() []layer {
	pure := []string{"contract", "api", "plan", "pods", "workloads"}
	return []layer{
		{"contract", nil},
		{"api", nil},
		{"plan", pure[:2]},
		{"pods", pure[:3]},
		{"workloads", pure[:4]},
		{"controllers", pure},
		{"operator", []string{"contract", "controllers"}},
		{"frame", append(slices.Clone(pure), "controllers", "operator")},
		{"simulation", append(slices.Clone(pure), "controllers", "operator", "frame")},
		{"testing", append(slices.Clone(pure), "controllers", "operator", "frame", "simulation")},
	}
}

// LayerFaults returns the packages of core that are in no known layer, and the imports that lead upwards, one line
// each. Tests may import any layer.
func LayerFaults(root fs.FS, core Module) ([]string, error) {
	var faults []string
	known := layers()
	err := fs.WalkDir(root, core.Folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(name), core.Folder+"/")
		i := slices.IndexFunc(known, func(l layer) bool { return l.name == layerOf(pkg) })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("%s: is in no layer", name))
			return nil
		}
		imports, err := importsOf(root, name)
		for _, other := range imports {
			other, ours := strings.CutPrefix(other, core.Path()+"/")
			if ours && layerOf(other) != known[i].name && !slices.Contains(known[i].above, layerOf(other)) {
				faults = append(faults, fmt.Sprintf("%s: %s may not import %s", name, known[i].name, other))
			}
		}
		return err
	})
	return faults, err
}

// layerOf returns the first folder of a package's path. Packages below internal, which only core can import, have the
// folders of the layers, too.
func layerOf(pkg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
	return name
}

func importsOf(root fs.FS, name string) ([]string, error) {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	var imports []string
	for _, spec := range file.Imports {
		text, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		imports = append(imports, text)
	}
	return imports, nil
}
