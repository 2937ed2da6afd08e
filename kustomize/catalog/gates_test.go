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

// The catalog knows the names of all feature gates with which managers start.
func TestEveryGateOfTheManagersIsKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "core", "operator", "features", "gates.go"), nil, 0)
	require.NoError(t, err)
	accepted := []string{"AllAlpha", "AllBeta"}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && len(spec.Names) == 1 {
			if kind, is := spec.Type.(*ast.Ident); is && kind.Name == "Name" {
				accepted = append(accepted, spec.Names[0].Name)
			}
		}
		return true
	})
	require.Greater(t, len(accepted), 20)
	for _, name := range accepted {
		assert.True(t, KnowsGate(name), name)
	}
	for _, name := range gatesAccepted() {
		assert.Contains(t, accepted, name)
	}
	assert.False(t, KnowsGate("Typo"))
}
