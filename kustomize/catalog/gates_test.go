package catalog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A component turns a gate on that the manager reads.
func TestGatesOfComponentsAreRead(t *testing.T) {
	features, err := Features()
	require.NoError(t, err)
	for _, feature := range features {
		assert.NotEmpty(t, feature.Gates, feature.Name)
		for name := range feature.gates {
			assert.Contains(t, feature.Gates, name, "a component of %s turns it on", feature.Name)
		}
	}
}

// gateName is a text that is the name of a feature gate.
var gateName = regexp.MustCompile(`^[A-Z]\w+$`)

// The catalog knows the names of all feature gates with which managers start.
func TestEveryGateOfTheManagersIsKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "core", "operator", "features", "gates.go"), nil, 0)
	require.NoError(t, err)
	accepted := []string{"AllAlpha", "AllBeta"}
	ast.Inspect(file, func(node ast.Node) bool {
		text, is := node.(*ast.BasicLit)
		if !is || text.Kind != token.STRING {
			return true
		}
		if name, err := strconv.Unquote(text.Value); err == nil && gateName.MatchString(name) {
			accepted = append(accepted, name)
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
