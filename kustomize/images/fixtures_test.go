package images

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// folder is an OCI layout that a test writes.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{t: t, path: t.TempDir()}
	_, err := layout.Write(f.path, empty.Index)
	require.NoError(t, err)
	return f
}

func (f *folder) blobFile(digest v1.Hash) string {
	return filepath.Join(f.path, "blobs", digest.Algorithm, digest.Hex)
}

// image returns an image with two layers.
func (f *folder) image(architecture string) v1.Image {
	f.t.Helper()
	content, err := random.Image(64, 2)
	require.NoError(f.t, err)
	config, err := content.ConfigFile()
	require.NoError(f.t, err)
	config.OS, config.Architecture = "linux", architecture
	content, err = mutate.ConfigFile(content, config)
	require.NoError(f.t, err)
	return content
}

// add writes an image for two platforms.
func (f *folder) add(reference string) v1.ImageIndex {
	f.t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: f.image(architecture), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	require.NoError(f.t, layout.Path(f.path).AppendIndex(index, layout.WithAnnotations(map[string]string{refName: reference})))
	return index
}

// addOne writes an image for one platform.
func (f *folder) addOne(reference string) v1.Image {
	f.t.Helper()
	content := f.image("amd64")
	require.NoError(f.t, layout.Path(f.path).AppendImage(content, layout.WithAnnotations(map[string]string{refName: reference})))
	return content
}

// digest returns the digest of an image or an index.
func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	found, err := of.Digest()
	require.NoError(t, err)
	return found
}

// server is a registry in memory that counts requests by method.
type server struct {
	*httptest.Server
	host  string
	mutex sync.Mutex
	count map[string]int
}

// newServer serves a registry behind a handler.
func newServer(t *testing.T, around func(http.Handler) http.Handler) *server {
	t.Helper()
	s := &server{count: map[string]int{}}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if around != nil {
		handler = around(handler)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		s.mutex.Lock()
		s.count[request.Method]++
		s.mutex.Unlock()
		handler.ServeHTTP(writer, request)
	}))
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "http://")
	return s
}

// requests returns how many requests of a method there were, and forgets them.
func (s *server) requests(method string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := s.count[method]
	s.count[method] = 0
	return n
}

// run runs "flotilla images" for a user whose container tools have these credentials.
func run(t *testing.T, config string, args ...string) (output string, code cli.Code) {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600))
	t.Setenv("DOCKER_CONFIG", home)
	var out bytes.Buffer
	command := NewCommand(nil, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	code = cli.Run(t.Context(), command)
	return out.String(), code
}
