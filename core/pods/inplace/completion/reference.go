package completion

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// reference is an image name in full.
type reference struct {
	repository string // with registry, such as docker.io/library/nginx; empty for a bare image ID
	tag        string // latest where neither tag nor digest is given
	digest     string // such as sha256:...
}

// parseReference reads an image name by its text alone. A text that is no name has an empty repository.
func parseReference(image string) reference {
	image = strings.TrimPrefix(strings.TrimPrefix(image, "docker-pullable://"), "docker://")
	if strings.HasPrefix(image, "sha256:") {
		return reference{digest: image}
	}
	var r reference
	image, r.digest, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image, r.tag = image[:colon], image[colon+1:]
	}
	if r.tag == "" && r.digest == "" {
		r.tag = "latest"
	}
	r.repository = fullRepository(image)
	return r
}

func fullRepository(name string) string {
	registry, path, found := strings.Cut(name, "/")
	switch {
	case name == "":
		return ""
	case !found || !strings.ContainsAny(registry, ".:") && registry != "localhost":
		registry, path = "docker.io", name
	case registry == "index.docker.io":
		registry = "docker.io"
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return registry + "/" + path
}

// runs reports whether the status names the image by name and tag, or by its digest. That it does not
// proves nothing: a runtime that knows an image by two names reports either.
func runs(s *corev1.ContainerStatus, image string) bool {
	want, shown := parseReference(image), parseReference(s.Image)
	if want.digest != "" {
		return want.digest == shown.digest || want.digest == parseReference(s.ImageID).digest
	}
	return want.repository != "" && want.repository == shown.repository && want.tag == shown.tag
}

// sameImageID reports whether two image IDs of container statuses are of the same content.
func sameImageID(a, b string) bool {
	left := parseReference(a).digest
	right := parseReference(b).digest
	if left == "" || right == "" {
		return a == b
	}
	return left == right
}
