package catalog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The catalog knows the gates that each operator says it reads.
func TestGatesAreThoseOfTheOperators(t *testing.T) {
	features, err := Features()
	require.NoError(t, err)
	for _, feature := range features {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", feature.Name, "setup", "operator.go"), nil, 0)
		require.NoError(t, err)
		var read []string
		ast.Inspect(file, func(node ast.Node) bool {
			field, is := node.(*ast.KeyValueExpr)
			if !is {
				return true
			}
			list, isList := field.Value.(*ast.CompositeLit)
			if name, isName := field.Key.(*ast.Ident); !isName || !isList || name.Name != "FeatureGates" {
				return true
			}
			for _, element := range list.Elts {
				if gate, is := element.(*ast.SelectorExpr); is {
					read = append(read, gate.Sel.Name)
				}
			}
			return true
		})
		slices.Sort(read)
		assert.NotEmpty(t, read, feature.Name)
		assert.Equal(t, read, feature.Gates, feature.Name)
		for name := range feature.gates {
			assert.Contains(t, feature.Gates, name, "a component of %s turns it on", feature.Name)
		}
	}
}
