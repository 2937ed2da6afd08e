package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A build that fails is told whole, and without what was downloaded for it.
func TestWhatGoSaysOfAFailure(t *testing.T) {
	wrong := strings.Repeat("main.go:1:1: wrong\n", 20)
	assert.Equal(t, strings.TrimSpace("# build\n"+wrong), saidByGo([]byte("go: downloading example.com/a v1.0.0\n# build\n"+wrong)))
	assert.Empty(t, saidByGo(nil))
}

// Who needs nothing that is not built does not wait for the build of another release.
func TestWhatIsBuiltWaitsForNoBuild(t *testing.T) {
	options, err := Options{Cache: t.TempDir(), Out: io.Discard}.complete()
	require.NoError(t, err)
	unlock, err := lockFile(t.Context(), filepath.Join(options.Cache, "build.lock"), func() {})
	require.NoError(t, err)
	defer unlock()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err = Build(ctx, options, Envtest)
	require.ErrorIs(t, err, context.DeadlineExceeded, "something is missing")

	b := newBuilder(options)
	for _, r := range recipesFor(options, Envtest) {
		require.NoError(t, os.MkdirAll(filepath.Join(b.root, r.folder), 0o755))
		for _, c := range r.binaries {
			require.NoError(t, os.WriteFile(filepath.Join(b.root, r.folder, c.name), nil, 0o755))
		}
	}
	built, err := Build(t.Context(), options, Envtest)
	require.NoError(t, err)
	assert.DirExists(t, built.Kubernetes)
}
