package images

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// read gets a part of a repository and returns its content.
func read(t *testing.T, s *server, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v2/"+path, nil)
	require.NoError(t, err)
	answer, err := s.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return text
}

// holds checks that the registry has an index with both of its images and all their blobs, byte by byte.
func holds(t *testing.T, s *server, f *folder, repository, tag string, want v1.Descriptor) {
	t.Helper()
	text := read(t, s, repository+"/manifests/"+tag)
	sum := sha256.Sum256(text)
	assert.Equal(t, want.Digest.Hex, hex.EncodeToString(sum[:]), repository)
	images, err := readLayout(os.DirFS(f.path))
	require.NoError(t, err)
	for _, i := range images {
		if i.digest != want.Digest {
			continue
		}
		assert.Len(t, i.manifests, 3, "two images and their index")
		for _, m := range i.manifests {
			assert.Equal(t, m.text, read(t, s, repository+"/manifests/"+m.descriptor.Digest.String()))
		}
		for _, blob := range i.blobs {
			stored, err := os.ReadFile(f.blobFile(blob.Digest))
			require.NoError(t, err)
			assert.Equal(t, stored, read(t, s, repository+"/blobs/"+blob.Digest.String()))
		}
	}
}

// What a release has comes to another registry with all platforms and the same digests.
func TestImagesComeToARegistry(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	cloneset := f.add("ghcr.io/someone/flotilla/cloneset-manager:v0.1.0")
	jobs := f.add("flotilla/jobs-manager:v0.1.7")

	output, code := run(t, `{}`, "push", f.path, s.host+"/team/")

	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, "pushed "+s.host+"/team/flotilla/cloneset-manager:v0.1.0@"+cloneset.Digest.String()+" (linux/amd64, linux/arm64)\n"+
		"pushed "+s.host+"/team/flotilla/jobs-manager:v0.1.7@"+jobs.Digest.String()+" (linux/amd64, linux/arm64)\n"+
		"To install: flotilla install cloneset jobs --registry "+s.host+"/team --version jobs=v0.1.7\n", output)
	holds(t, s, f, "team/flotilla/cloneset-manager", "v0.1.0", cloneset)
	holds(t, s, f, "team/flotilla/jobs-manager", "v0.1.7", jobs)

	assert.Positive(t, s.requests(http.MethodPost))
	_, code = run(t, `{}`, "push", f.path, s.host+"/team")
	assert.Equal(t, cli.Done, code)
	assert.Zero(t, s.requests(http.MethodPost), "the registry has all blobs")
}

func TestADryRunAsksNobody(t *testing.T) {
	s, f := newServer(t, nil), newFolder(t)
	one := f.image("linux/arm64", "one")
	f.name(one, "flotilla/daemon-manager:v0.1.0")

	output, code := run(t, `{}`, "push", f.path, s.host, "--dry-run")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "would push "+s.host+"/flotilla/daemon-manager:v0.1.0@"+one.Digest.String()+"\n")
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
			if request.Method != http.MethodHead && failures.Add(-1) >= 0 {
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
	holds(t, s, f, "flotilla/spread-manager", "v0.1.0", want)

	status = http.StatusForbidden
	failures.Store(1000)
	f.add("flotilla/budget-manager:v0.1.0")
	output, code = run(t, `{}`, "push", f.path, s.host)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "403 Forbidden: not now; check the permission to push, or log in again with your container tool")
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

func TestErrorsThatAnotherTryMayNotMeet(t *testing.T) {
	for _, err := range []error{&net.OpError{Op: "dial", Err: errors.New("refused")}, io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		assert.True(t, ofConnection(&url.Error{Op: "Put", Err: err}), err)
	}
	for _, err := range []error{
		context.Canceled, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, x509.UnknownAuthorityError{}, errors.New("no credentials"),
	} {
		assert.False(t, ofConnection(&url.Error{Op: "Put", Err: err}), err)
	}
}

func TestFoldersThatAreNoLayout(t *testing.T) {
	empty := t.TempDir()
	missing, changed, foreign := newFolder(t), newFolder(t), newFolder(t)
	missing.add("flotilla/jobs-manager:v0.1.0")
	images, err := readLayout(os.DirFS(missing.path))
	require.NoError(t, err)
	require.NoError(t, os.Remove(missing.blobFile(images[0].blobs[1].Digest)))
	index := changed.add("flotilla/jobs-manager:v0.1.0")
	require.NoError(t, os.WriteFile(changed.blobFile(index.Digest), []byte("{}"), 0o600))
	foreign.add("registry.example/nginx:1")

	for name, c := range map[string]struct{ folder, want string }{
		"an empty folder":       {empty, "must be a complete OCI layout, such as folder images of a release"},
		"a missing blob":        {missing.path, "find blob " + images[0].blobs[1].Digest.String()},
		"a changed manifest":    {changed.path, "manifest " + index.Digest.String() + " has another content than its digest says"},
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
