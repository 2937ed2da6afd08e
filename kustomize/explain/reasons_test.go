package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waitReasons returns the reasons of waits of the workloads: the constants named Wait in their reasons and in core's, and all of
// the progress of updates in place.
func waitReasons(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{
		"core/plan/action/reasons.go", "core/pods/inplace/completion/reasons.go", "core/workloads/*/reasons.go", "core/workloads/failures/failures.go",
		"cloneset/internal/*/plan/reasons.go", "statefulset/internal/*/plan/reasons.go", "daemonset/internal/*/plan/reasons.go",
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ofProgress := strings.HasPrefix(pattern, "core/pods/inplace")
			ast.Inspect(file, func(node ast.Node) bool {
				spec, ok := node.(*ast.ValueSpec)
				if !ok || len(spec.Values) != 1 {
					return true
				}
				constant := spec.Names[0].Name
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && (strings.HasPrefix(constant, "Wait") || ofProgress && strings.HasPrefix(constant, "Reason")) {
					value, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					found[value] = constant
				}
				return true
			})
		}
	}
	return found
}

// Whoever asks why a workload waits learns what to do, if it is only to wait.
func TestEachWaitHasARemedy(t *testing.T) {
	reasons := waitReasons(t)
	assert.Greater(t, len(reasons), 20)
	delete(reasons, "StartInPlaceUpdate") // a reason of the pod's condition
	for reason, constant := range reasons {
		assert.NotEmpty(t, helpFor(reason), constant)
	}
	for _, reason := range []string{"ClaimTemplateRemoved", "ClaimsInUse", "WaitingForStaleClaim", "ClaimOwners", "Conflict"} {
		assert.Contains(t, reasons, reason)
	}
	assert.Empty(t, helpFor("Available"))
}
