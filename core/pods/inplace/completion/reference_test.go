package completion

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestParseReference(t *testing.T) {
	for image, want := range map[string]reference{
		"nginx":                            {"docker.io/library/nginx", "latest", ""},
		"nginx:1.25":                       {"docker.io/library/nginx", "1.25", ""},
		"docker.io/library/nginx:1.25":     {"docker.io/library/nginx", "1.25", ""},
		"index.docker.io/nginx":            {"docker.io/library/nginx", "latest", ""},
		"team/app":                         {"docker.io/team/app", "latest", ""},
		"registry:5000/app":                {"registry:5000/app", "latest", ""},
		"registry:5000/app:v1":             {"registry:5000/app", "v1", ""},
		"localhost/app":                    {"localhost/app", "latest", ""},
		"quay.io/a/b@sha256:abc":           {"quay.io/a/b", "", "sha256:abc"},
		"quay.io/a/b:v1@sha256:abc":        {"quay.io/a/b", "v1", "sha256:abc"},
		"docker-pullable://nginx@sha256:a": {"docker.io/library/nginx", "", "sha256:a"},
		"sha256:abc":                       {"", "", "sha256:abc"},
		"docker://sha256:abc":              {"", "", "sha256:abc"},
		"":                                 {"", "latest", ""},
	} {
		assert.Equal(t, want, parseReference(image), image)
	}
}

func TestRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		image, imageID, wanted string
		want                   bool
	}{
		"same text":              {"app:v1", "", "app:v1", true},
		"short name":             {"docker.io/library/nginx:latest", "", "nginx", true},
		"port is no tag":         {"registry:5000/app:latest", "", "registry:5000/app", true},
		"other tag":              {"app:v1", "", "app:v2", false},
		"other registry":         {"quay.io/app:v1", "", "docker.io/app:v1", false},
		"digest in the image ID": {"app:v1", "docker.io/library/app@sha256:abc", "app@sha256:abc", true},
		"digest differs":         {"app:v1", "docker.io/library/app@sha256:abc", "app@sha256:def", false},
		"tag and digest":         {"sha256:config", "app@sha256:abc", "app:v9@sha256:abc", true},
		"an ID says nothing":     {"sha256:config", "app@sha256:abc", "app:v1", false},
		"nothing reported":       {"", "", "app:v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, runs(&corev1.ContainerStatus{Image: tt.image, ImageID: tt.imageID}, tt.wanted))
		})
	}
}

func TestSameImageID(t *testing.T) {
	assert.True(t, sameImageID("docker-pullable://a@sha256:1", "b@sha256:1"))
	assert.False(t, sameImageID("a@sha256:1", "a@sha256:2"))
	assert.True(t, sameImageID("odd", "odd"))
	assert.False(t, sameImageID("odd", ""))
}
