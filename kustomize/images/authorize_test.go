package images

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// login is the file of a container tool that has logged in to a registry.
func login(host, user, password string) string {
	return `{"auths": {"https://` + host + `/v1/": {"auth": "` + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + `"}}}`
}

func TestARegistryWithPasswords(t *testing.T) {
	s := newServer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if user, password, _ := request.BasicAuth(); user != "ann" || password != "a:b" {
				writer.Header().Set("WWW-Authenticate", `Basic realm="here"`)
				writer.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(writer, request)
		})
	})
	f := newFolder(t)
	f.add("flotilla/jobs-manager:v0.1.0")

	output, code := run(t, login(s.host, "ann", "a:b"), "push", f.path, s.host)
	assert.Equal(t, cli.Done, code, output)

	output, code = run(t, `{}`, "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "registry "+s.host+" refuses access without credentials: log in with your container tool, as in docker login "+s.host)

	output, code = run(t, login(s.host, "ann", "secret-1"), "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "401 Unauthorized")
	assert.NotContains(t, output, "secret-1")
}

// tokens puts a token server before a registry. It gives a token for one repository to whoever may have it.
func tokens(t *testing.T, may func(*http.Request) bool) *server {
	t.Helper()
	var s *server
	s = newServer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if request.URL.Path == "/token" {
				if !may(request) {
					writer.WriteHeader(http.StatusForbidden)
					return
				}
				_, _ = writer.Write([]byte(`{"token": "` + request.FormValue("scope") + `"}`))
				return
			}
			if request.Header.Get("Authorization") != "Bearer repository:"+repositoryOf(request.URL.Path)+":pull,push" {
				writer.Header().Set("WWW-Authenticate", `Bearer realm="`+s.URL+`/token",service="registry",scope="any"`)
				writer.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(writer, request)
		})
	})
	return s
}

func TestARegistryWithTokens(t *testing.T) {
	s := tokens(t, func(request *http.Request) bool {
		user, password, _ := request.BasicAuth()
		return user == "ann" && password == "secret-1" && request.FormValue("service") == "registry"
	})
	f := newFolder(t)
	f.add("flotilla/jobs-manager:v0.1.0")
	f.add("flotilla/spread-manager:v0.1.0")

	output, code := run(t, login(s.host, "ann", "secret-1"), "push", f.path, s.host)
	assert.Equal(t, cli.Done, code, output)
	assert.Equal(t, 2, s.requests(http.MethodGet), "a token for each repository")

	output, code = run(t, login(s.host, "bob", "secret-2"), "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "for repository flotilla/jobs-manager: 403 Forbidden: check the permission to push")
	assert.NotContains(t, output, "secret-2")
}

// A container tool may keep a token in place of a password, and a helper may keep it.
func TestARegistryWithIdentityTokens(t *testing.T) {
	s := tokens(t, func(request *http.Request) bool {
		return request.Method == http.MethodPost && request.FormValue("grant_type") == "refresh_token" && request.FormValue("refresh_token") == "identity-1"
	})
	f := newFolder(t)
	f.add("flotilla/jobs-manager:v0.1.0")
	output, code := run(t, `{"auths": {"`+s.host+`": {"identitytoken": "identity-1"}}}`, "push", f.path, s.host)
	assert.Equal(t, cli.Done, code, output)

	programs := t.TempDir()
	const script = "#!/bin/sh\nread server\necho '{\"ServerURL\": \"'$server'\", \"Username\": \"<token>\", \"Secret\": \"identity-1\"}'\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "docker-credential-cloud"), []byte(script), 0o700)) //nolint:gosec // a program
	const none = "#!/bin/sh\necho credentials not found in native keychain\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "docker-credential-none"), []byte(none), 0o700)) //nolint:gosec // a program
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	for config, want := range map[string]cli.Code{
		`{"credHelpers": {"` + s.host + `": "cloud"}}`: cli.Done,
		`{"credsStore": "cloud"}`:                      cli.Done,
		`{"credsStore": "none"}`:                       cli.Failed,
		`{"credsStore": "missing"}`:                    cli.Failed,
		`{"auths": {"` + s.host + `": {"auth": "?"}}}`: cli.Failed,
		`{`: cli.Failed,
	} {
		output, code := run(t, config, "push", f.path, s.host)
		assert.Equal(t, want, code, "%s: %s", config, output)
	}
}

// No other host sees what a user's tools know about the registry.
func TestCredentialsGoToTheRegistryOnly(t *testing.T) {
	var stored []string
	storage := newServer(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			stored = append(stored, request.Header.Get("Authorization"))
			writer.WriteHeader(http.StatusCreated)
		})
	})
	s := newServer(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if _, _, given := request.BasicAuth(); !given {
				writer.Header().Set("WWW-Authenticate", `Basic realm="here"`)
				writer.WriteHeader(http.StatusUnauthorized)
				return
			}
			switch request.Method {
			case http.MethodHead:
				writer.WriteHeader(http.StatusNotFound)
			case http.MethodPost:
				writer.Header().Set("Location", storage.URL+"/upload?signature=1")
				writer.WriteHeader(http.StatusAccepted)
			default:
				writer.WriteHeader(http.StatusCreated)
			}
		})
	})
	f := newFolder(t)
	f.add("flotilla/jobs-manager:v0.1.0")

	output, code := run(t, login(s.host, "ann", "secret-1"), "push", f.path, s.host)

	require.Equal(t, cli.Done, code, output)
	assert.Len(t, stored, 5, "two configurations and three layers")
	for _, header := range stored {
		assert.Empty(t, header)
	}
}

func TestHostsOfCredentials(t *testing.T) {
	for key, want := range map[string]string{
		"https://index.docker.io/v1/": "index.docker.io", "docker.io": "index.docker.io", "registry.example:5000": "registry.example:5000",
		"http://registry.example/v2/": "registry.example",
	} {
		assert.Equal(t, want, hostOf(key), key)
	}
}
