package ports

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range 100 {
		ports, err := Free(t.Context(), 3)
		require.NoError(t, err)
		require.Len(t, ports, 3)
		for _, port := range ports {
			assert.False(t, given[port], "port %d", port)
			given[port] = true
		}
	}
}

func TestPortsInUseAreNotGiven(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		assert.False(t, reserve(t.Context(), listener.Addr().(*net.TCPAddr).Port), "in use at %s", address)
	}
}
