package manager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWritesEndAndReadsDoNot(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/hang" {
			_, _ = io.Copy(io.Discard, request.Body) // a server notices a client that leaves only after the body
			select {
			case <-release:
			case <-request.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(answer, request.URL.Query().Get("timeout"))
	}))
	defer server.Close()
	client := http.Client{Transport: limitWrites(100 * time.Millisecond)(http.DefaultTransport)}
	send := func(method, path string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		return string(answer), err
	}

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		told, err := send(method, "/")
		require.NoError(t, err)
		assert.Equal(t, "100ms", told, "%s tells the server", method)
		_, err = send(method, "/hang")
		require.ErrorContains(t, err, "deadline exceeded", "%s ends", method)
	}

	told, err := send(http.MethodPost, "/?timeout=1s")
	require.NoError(t, err)
	assert.Equal(t, "1s", told, "a timeout of the caller stays")

	time.AfterFunc(300*time.Millisecond, func() { close(release) }) // a read outlives three times the limit
	told, err = send(http.MethodGet, "/hang")
	require.NoError(t, err)
	assert.Empty(t, told)
}
