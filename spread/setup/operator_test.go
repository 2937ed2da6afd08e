package setup

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

func TestFlags(t *testing.T) {
	s := newSettings()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.add(flags)
	assert.True(t, s.versioned.kinds.Of(workloads.Deployment))
	require.NoError(t, flags.Parse([]string{"--ws-enabled-versioned-status="}))
	assert.False(t, s.versioned.kinds.Of(workloads.Deployment))
	assert.ErrorContains(t, flags.Parse([]string{"--ws-enabled-versioned-status=job"}), `unknown kind "job"`)
}
