package manager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// Nobody sends a request into a connection that the server is about to close.
func TestConnectionsEndWithAnAnswerBeforeTheProcessEnds(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		l := &leaving{}
		server := httptest.NewUnstartedServer(l.endConnections(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(answer, r.Proto)
		})))
		server.EnableHTTP2 = http2
		server.StartTLS()
		reuses := func() (reused bool) {
			trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
			request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, server.URL, http.NoBody)
			require.NoError(t, err)
			response, err := server.Client().Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2], string(text))
			return reused
		}
		assert.False(t, reuses())
		assert.True(t, reuses(), "connections are kept")
		l.Store(true)
		assert.True(t, reuses())
		await.Until(t, func(c *assert.CollectT) { assert.False(c, reuses(), "an answer has ended the connection") })
		server.Close()
	}
}
