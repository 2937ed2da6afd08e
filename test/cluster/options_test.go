package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEnvironmentChoosesTheRelease(t *testing.T) {
	for _, c := range []struct{ asked, variable, want string }{
		{"", "", DefaultKubernetes},
		{"", "1.33.13", "1.33.13"},
		{"1.34.0", "1.33.13", "1.34.0"},
	} {
		t.Setenv(KubernetesVariable, c.variable)
		o, err := Options{Kubernetes: c.asked}.complete()
		require.NoError(t, err)
		assert.Equal(t, c.want, o.Kubernetes)
	}
}
