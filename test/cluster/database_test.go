package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestADatabaseStartsAnotherCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("two control planes take some seconds: not with -short")
	}
	if !Built(Options{}, ControlPlane) {
		skip(t, "the binaries are not built yet: run `go run ./test/cluster/cmd/cluster build`")
	}
	folder := filepath.Join(t.TempDir(), "databases", "one")
	first, err := Start(t.Context(), Options{Name: "test-first", Simulated: true, Nodes: NoNodes})
	require.NoError(t, err)
	_, err = first.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, first.DownKeeping(t.Context(), folder))
	_, err = Attach(t.Context(), Options{Name: "test-first"})
	require.ErrorIs(t, err, ErrNotRunning)

	for range 2 { // the folder stays as it is
		second, err := Start(t.Context(), Options{Name: "test-second", Simulated: true, Nodes: NoNodes, Database: folder})
		require.NoError(t, err)
		_, err = second.client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, second.client.CoreV1().Namespaces().Delete(t.Context(), "kept", metav1.DeleteOptions{}))
		require.NoError(t, second.Down(t.Context()))
	}
}
