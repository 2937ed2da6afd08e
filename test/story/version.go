package story

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
)

// Since reports whether the cluster runs this minor version of Kubernetes 1 or a newer one: stories say by it what older
// clusters do in another way.
func (w World) Since(t *testing.T, minor int) bool {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(w.Cluster.RESTConfig())
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	present, err := strconv.Atoi(strings.TrimSuffix(version.Minor, "+"))
	require.NoError(t, err)
	return present >= minor
}
