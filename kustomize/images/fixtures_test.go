package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// folder is an OCI layout that a test writes.
type folder struct {
	t     *testing.T
	path  string
	index v1.IndexManifest
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{t: t, path: t.TempDir(), index: v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}}
	require.NoError(t, os.MkdirAll(filepath.Join(f.path, "blobs", "sha256"), 0o755))
	return f
}

// blob writes content and describes it.
func (f *folder) blob(kind types.MediaType, content []byte) v1.Descriptor {
	f.t.Helper()
	sum := sha256.Sum256(content)
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	require.NoError(f.t, os.WriteFile(f.blobFile(digest), content, 0o600))
	return v1.Descriptor{MediaType: kind, Size: int64(len(content)), Digest: digest}
}

func (f *folder) blobFile(digest v1.Hash) string {
	return filepath.Join(f.path, filepath.FromSlash(blobPath(digest)))
}

func (f *folder) json(kind types.MediaType, value any) v1.Descriptor {
	f.t.Helper()
	text, err := json.Marshal(value)
	require.NoError(f.t, err)
	return f.blob(kind, text)
}

// image writes an image of one platform with two layers, one of which all images share.
func (f *folder) image(platform, content string) v1.Descriptor {
	f.t.Helper()
	parsed, err := v1.ParsePlatform(platform)
	require.NoError(f.t, err)
	described := f.json(types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: f.json(types.OCIConfigJSON, v1.ConfigFile{OS: parsed.OS, Architecture: parsed.Architecture}),
		Layers: []v1.Descriptor{f.blob(types.OCILayer, []byte("shared")), f.blob(types.OCILayer, []byte(content+platform))},
	})
	described.Platform = parsed
	return described
}

// add names an image for two platforms.
func (f *folder) add(reference string) v1.Descriptor {
	f.t.Helper()
	described := f.json(types.OCIImageIndex, v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{f.image("linux/amd64", reference), f.image("linux/arm64", reference)},
	})
	f.name(described, reference)
	return described
}

// name writes index.json with one more image.
func (f *folder) name(described v1.Descriptor, reference string) {
	f.t.Helper()
	described.Annotations = map[string]string{refName: reference}
	f.index.Manifests = append(f.index.Manifests, described)
	text, err := json.Marshal(f.index)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(filepath.Join(f.path, "index.json"), text, 0o600))
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
	t.Setenv("REGISTRY_AUTH_FILE", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	return runAs(t.Context(), args...)
}

func runAs(ctx context.Context, args ...string) (output string, code cli.Code) {
	var out bytes.Buffer
	command := NewCommand(nil, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	code = cli.Run(ctx, command)
	return out.String(), code
}
