package process_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"

	"github.com/flotilla-project/flotilla/core/operator/process"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// serving serves on an address that nobody listened on, and returns its URL and how to stop.
func serving(t *testing.T, endpoint process.Endpoint, handler http.Handler) (url string, stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint.Address = listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- endpoint.Serve(ctx, handler) }()
	scheme := "http://"
	if endpoint.Secure {
		scheme = "https://"
	}
	return scheme + endpoint.Address, func() error {
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
			url, stop := serving(t, process.Endpoint{Secure: secure}, metrics)
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

// Until the certificate is there, clients that do not verify it are served all the same.
func TestAnEndpointShowsItsCertificateOnceThereIsOne(t *testing.T) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("web.example.com", nil, nil)
	require.NoError(t, err)
	own, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	var there atomic.Bool
	url, stop := serving(t, process.Endpoint{Secure: true, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if !there.Load() {
			return nil, errors.New("not yet")
		}
		return &own, nil
	}}, http.NotFoundHandler())
	shown := func(c require.TestingT) []string {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test looks at the certificate
		connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
		require.NoError(c, err)
		defer connection.Close()
		return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames
	}

	await.Until(t, func(c *assert.CollectT) { assert.Equal(c, []string{"localhost"}, shown(c)) })
	there.Store(true)
	assert.Equal(t, []string{"web.example.com"}, shown(t))
	require.NoError(t, stop())
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
