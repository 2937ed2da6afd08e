package process_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/operator/process"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// serving serves on an address that nobody listened on, and returns its URL and how to stop.
func serving(t *testing.T, secure bool, handler http.Handler) (url string, stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- process.Endpoint{Address: address, Secure: secure}.Serve(ctx, handler) }()
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	return scheme + address, func() error {
		cancel()
		return <-ended
	}
}

func get(ctx context.Context, url string) (code int, protocol, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err.Error()
	}
	insecure := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is self-signed
	response, err := (&http.Transport{TLSClientConfig: insecure, DisableKeepAlives: true, ForceAttemptHTTP2: true}).RoundTrip(request)
	if err != nil {
		return 0, "", err.Error()
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err.Error()
	}
	return response.StatusCode, response.Proto, string(page)
}

func TestAnEndpointServesUntilItIsStopped(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "answer"}))
	metrics, err := process.Metrics{Gatherer: registry}.Handler()
	require.NoError(t, err)
	for protocol, secure := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(protocol, func(t *testing.T) {
			url, stop := serving(t, secure, metrics)
			await.Until(t, func(c *assert.CollectT) {
				code, spoken, page := get(t.Context(), url)
				assert.Equal(c, http.StatusOK, code, page)
				assert.Equal(c, protocol, spoken)
				assert.Contains(c, page, "answer 0")
			})
			require.NoError(t, stop())
			code, _, _ := get(t.Context(), url)
			assert.Zero(t, code, "nobody listens")
		})
	}
}

func TestAnAddressThatIsTaken(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	for _, secure := range []bool{false, true} {
		err := process.Endpoint{Address: listener.Addr().String(), Secure: secure}.Serve(t.Context(), http.NotFoundHandler())
		assert.ErrorContains(t, err, "listen on "+listener.Addr().String())
	}
}
