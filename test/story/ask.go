package story

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Ask sends one request to the demo application at port 8080 of the pod and returns the answer. The application may listen
// only some time after its container has started, so connections are tried until one is accepted. It returns an error if
// the answer does not come or says that the request failed.
func (w World) Ask(t *testing.T, o *corev1.Pod, path string) (string, error) {
	t.Helper()
	address := net.JoinHostPort(o.Status.PodIP, "8080")
	var connection net.Conn
	Eventually(t, "a connection to pod "+o.Name, func(ctx context.Context) (err error) {
		connection, err = w.Cluster.DialContext(ctx, address)
		return err
	})
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return connection, nil },
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	return string(text), Want(answer.StatusCode == http.StatusOK, "%s %s: %s", path, answer.Status, fmt.Sprintf("%.200s", text))
}
