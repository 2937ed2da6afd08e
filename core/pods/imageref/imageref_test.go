package imageref_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
)

const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestReferencesAreStoredInOneForm(t *testing.T) {
	cases := []struct{ written, name, tag, cri string }{
		{"nginx", "nginx", "latest", "docker.io/library/nginx:latest"},
		{"docker.io/library/nginx:1.25", "nginx", "1.25", "docker.io/library/nginx:1.25"},
		{"index.docker.io/library/nginx:1.25", "nginx", "1.25", "docker.io/library/nginx:1.25"},
		{"library/nginx", "nginx", "latest", "docker.io/library/nginx:latest"},
		{"foo/bar:v1", "foo/bar", "v1", "docker.io/foo/bar:v1"},
		{"localhost/a", "localhost/a", "latest", "localhost/a:latest"},
		{"localhost:5000/a/b", "localhost:5000/a/b", "latest", "localhost:5000/a/b:latest"},
		{"REGISTRY/a:1", "REGISTRY/a", "1", "REGISTRY/a:1"},
		{"[fd00::1]:5000/a:1", "[fd00::1]:5000/a", "1", "[fd00::1]:5000/a:1"},
		{"reg.io/a/b@" + digest, "reg.io/a/b", digest, "reg.io/a/b@" + digest},
		{"reg.io/a/b:v1@" + digest, "reg.io/a/b", digest, "reg.io/a/b@" + digest},
		{"nginx@" + digest, "nginx", digest, "docker.io/library/nginx@" + digest},
	}
	for _, c := range cases {
		t.Run(c.written, func(t *testing.T) {
			ref, err := imageref.Parse(c.written)
			require.NoError(t, err)
			assert.Equal(t, imageref.Ref{Name: c.name, Tag: c.tag}, ref)
			assert.Equal(t, strings.Contains(c.written, "@"), ref.IsDigest())
			cri, err := ref.CRI()
			require.NoError(t, err)
			assert.Equal(t, c.cri, cri)

			for _, form := range []string{ref.String(), cri} {
				again, err := imageref.Parse(form)
				require.NoError(t, err)
				assert.Equal(t, ref, again, form)
			}
		})
	}
}

func TestWhatIsNoReference(t *testing.T) {
	for _, written := range []string{
		"", " ", ":", "nginx:", "nginx@", "nginx@sha256:12", "Foo", "reg.io/Foo", "a b", "http://reg.io/a",
		strings.TrimPrefix(digest, "sha256:"),
	} {
		t.Run(written, func(t *testing.T) {
			_, err := imageref.Parse(written)
			assert.ErrorContains(t, err, "invalid reference format")
		})
	}
}

func TestWhatIsStoredMayBeNoReference(t *testing.T) {
	_, err := imageref.Ref{Name: "Foo", Tag: "1"}.CRI()
	assert.ErrorContains(t, err, "repository name")
}

func FuzzParseIsStable(f *testing.F) {
	for _, seed := range []string{"nginx", "foo/bar:v1", "localhost:5000/a/b", "reg.io/a/b:v1@" + digest} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		ref, err := imageref.Parse(written)
		if err != nil {
			return
		}
		cri, err := ref.CRI()
		require.NoError(t, err)
		again, err := imageref.Parse(cri)
		require.NoError(t, err)
		assert.Equal(t, ref, again)
	})
}
