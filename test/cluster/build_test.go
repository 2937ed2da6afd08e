package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A build that fails is told whole, and without what was downloaded for it.
func TestWhatGoSaysOfAFailure(t *testing.T) {
	wrong := strings.Repeat("main.go:1:1: wrong\n", 20)
	assert.Equal(t, strings.TrimSpace("# build\n"+wrong), saidByGo([]byte("go: downloading example.com/a v1.0.0\n# build\n"+wrong)))
	assert.Empty(t, saidByGo(nil))
}
