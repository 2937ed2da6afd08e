package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := httptest.NewServer(&guard{registry: answer})
	defer server.Close()
	ask := func(method, path, user, password string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		if user != "" {
			request.SetBasicAuth(user, password)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
	for _, c := range []struct {
		name, path, user, password string
		want                       int
	}{
		{"everybody may have public images", "/v2/flotilla/demo-app/manifests/v1", "", "", http.StatusOK},
		{"the version check is public", "/v2/", "", "", http.StatusOK},
		{"private images ask for credentials", "/v2/private/app/manifests/v1", "", "", http.StatusUnauthorized},
		{"wrong ones are refused", "/v2/private/app/blobs/sha256:1", PrivateUser, "wrong", http.StatusUnauthorized},
		{"right ones are not", "/v2/private/app/blobs/sha256:1", PrivateUser, PrivatePassword, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, err := ask(http.MethodGet, c.path, c.user, c.password)
			require.NoError(t, err)
			assert.Equal(t, c.want, have)
		})
	}

	_, err := ask(http.MethodPut, closedPath+"outage/app", "", "")
	require.NoError(t, err)
	_, err = ask(http.MethodGet, "/v2/outage/app/manifests/v1", "", "")
	require.Error(t, err, "a closed repository does not answer")
	have, err := ask(http.MethodGet, "/v2/outage/other/manifests/v1", "", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, have, "others do")
	_, err = ask(http.MethodDelete, closedPath+"outage/app", "", "")
	require.NoError(t, err)
	have, err = ask(http.MethodGet, "/v2/outage/app/manifests/v1", "", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, have)
}
