package images

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// holds checks that the registry has an index with all of its images and their blobs.
func holds(t *testing.T, reference string, want v1.ImageIndex) {
	t.Helper()
	tag, err := name.NewTag(reference)
	require.NoError(t, err)
	got, err := remote.Index(tag)
	require.NoError(t, err)
	assert.Equal(t, digest(t, want), digest(t, got), reference)
	assert.NoError(t, validate.Index(got), reference)
}

// Helm charts of a release are in its layout, too.
func TestChartsComeToARegistry(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	chart := f.add("ghcr.io/someone/flotilla/charts/cloneset:0.1.0")

	output, code := run(t, `{}`, "push", f.path, s.host+"/team")

	require.Equal(t, cli.Done, code, output)
	holds(t, s.host+"/team/flotilla/charts/cloneset:0.1.0", chart)
}

// What a release has comes to another registry with all platforms and the same digests.
func TestImagesComeToARegistry(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	cloneset := f.add("ghcr.io/someone/flotilla/cloneset-manager:v0.1.0")
	jobs := f.add("flotilla/jobs-manager:v0.1.7")

	output, code := run(t, `{}`, "push", f.path, s.host+"/team/")

	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, "pushed "+s.host+"/team/flotilla/cloneset-manager:v0.1.0@"+digest(t, cloneset).String()+" (linux/amd64, linux/arm64)\n"+
		"pushed "+s.host+"/team/flotilla/jobs-manager:v0.1.7@"+digest(t, jobs).String()+" (linux/amd64, linux/arm64)\n"+
		"To install: flotilla install cloneset jobs --registry "+s.host+"/team --version jobs=v0.1.7\n", output)
	holds(t, s.host+"/team/flotilla/cloneset-manager:v0.1.0", cloneset)
	holds(t, s.host+"/team/flotilla/jobs-manager:v0.1.7", jobs)

	assert.Positive(t, s.requests(http.MethodPost))
	_, code = run(t, `{}`, "push", f.path, s.host+"/team")
	assert.Equal(t, cli.Done, code)
	assert.Zero(t, s.requests(http.MethodPost), "the registry has all blobs")
}

func TestADryRunAsksNobody(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	one := f.addOne("flotilla/daemon-manager:v0.1.0")

	output, code := run(t, `{}`, "push", f.path, s.host, "--dry-run")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "would push "+s.host+"/flotilla/daemon-manager:v0.1.0@"+digest(t, one).String()+"\n")
	assert.Contains(t, output, "daemon cannot be installed from there: the folder has no flotilla/daemon-agent")
	assert.NotContains(t, output, "To install")
	assert.Empty(t, s.count)
}

// A registry that fails for a moment gets the request again; a refusal is told at once.
func TestARegistryThatFails(t *testing.T) {
	var failures atomic.Int32
	status := http.StatusServiceUnavailable
	s := newServer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost && failures.Add(-1) >= 0 {
				http.Error(writer, "not now", status)
				return
			}
			next.ServeHTTP(writer, request)
		})
	})
	f := newFolder(t)
	want := f.add("flotilla/spread-manager:v0.1.0")

	failures.Store(1)
	output, code := run(t, `{}`, "push", f.path, s.host)
	require.Equal(t, cli.Done, code, output)
	holds(t, s.host+"/flotilla/spread-manager:v0.1.0", want)

	status = http.StatusForbidden
	failures.Store(1000)
	f.add("flotilla/budget-manager:v0.1.0")
	output, code = run(t, `{}`, "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "registry "+s.host+" refuses access: check the permission to push, or log in with your container tool, as in docker login "+s.host)
	assert.Contains(t, output, "403 Forbidden: not now")
}

// The advice for connections that fail is about clusters, and a push needs none.
func TestARegistryThatIsNotThere(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	f.add("flotilla/jobs-manager:v0.1.0")
	s.Close()

	output, code := run(t, `{}`, "push", f.path, s.host)

	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "error: push "+s.host+"/flotilla/jobs-manager:v0.1.0: registry "+s.host+" cannot be reached: ")
	assert.NotContains(t, output, "kubeconfig")
}

// A registry gets the credentials that the user's container tool has, and no message has a password.
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
	login := func(password string) string {
		return `{"auths": {"` + s.host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("ann:"+password)) + `"}}}`
	}

	output, code := run(t, login("a:b"), "push", f.path, s.host)
	assert.Equal(t, cli.Done, code, output)

	for _, config := range []string{`{}`, login("secret-1")} {
		output, code = run(t, config, "push", f.path, s.host)
		assert.Equal(t, cli.Failed, code)
		assert.Contains(t, output, "registry "+s.host+" refuses access: check the permission to push, or log in with your container tool, as in docker login "+s.host)
		assert.NotContains(t, output, "secret-1")
	}

	output, code = run(t, `{`, "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code, output)
}

func TestFoldersThatAreNoLayout(t *testing.T) {
	empty := t.TempDir()
	missing, short, changed, foreign := newFolder(t), newFolder(t), newFolder(t), newFolder(t)
	layers, err := missing.addOne("flotilla/jobs-manager:v0.1.0").Layers()
	require.NoError(t, err)
	lost := digest(t, layers[1])
	require.NoError(t, os.Remove(missing.blobFile(lost)))
	layers, err = short.addOne("flotilla/jobs-manager:v0.1.0").Layers()
	require.NoError(t, err)
	cut := digest(t, layers[0])
	require.NoError(t, os.Truncate(short.blobFile(cut), 1))
	index := digest(t, changed.add("flotilla/jobs-manager:v0.1.0"))
	require.NoError(t, os.WriteFile(changed.blobFile(index), []byte("{}"), 0o600))
	foreign.add("registry.example/nginx:1")

	for name, c := range map[string]struct{ folder, want string }{
		"an empty folder":       {empty, "must be a complete OCI layout, such as folder images of a release"},
		"a missing blob":        {missing.path, "find blob " + lost.String()},
		"a blob cut short":      {short.path, "blob " + cut.String() + " has 1 bytes, but its manifest says"},
		"a changed manifest":    {changed.path, "manifest " + index.String() + " has another content than its digest says"},
		"images of others":      {foreign.path, "the name does not end with flotilla/NAME:TAG, so it is not an image of Flotilla"},
		"a folder that is gone": {filepath.Join(empty, "nothing"), "index.json"},
	} {
		output, code := run(t, `{}`, "push", c.folder, "registry.example")
		assert.Equal(t, cli.Failed, code, name)
		assert.Contains(t, output, c.want, name)
	}
}

func TestRegistriesThatCannotBeMeant(t *testing.T) {
	for text, want := range map[string]string{
		"https://registry.example/team": "registry https://registry.example/team: omit the scheme",
		"Foo Bar":                       "registry Foo Bar: ",
		"team":                          "registry team: ",
	} {
		output, code := run(t, `{}`, "push", t.TempDir(), text)
		assert.Equal(t, cli.Misused, code, text)
		assert.Contains(t, output, want)
	}
	output, code := run(t, `{}`, "push", t.TempDir())
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "name a folder and a registry")
}
