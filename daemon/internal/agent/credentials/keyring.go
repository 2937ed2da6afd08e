package credentials

import (
	"cmp"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// Entry is the credentials that a docker configuration or a plugin has for one registry or a part of it.
type Entry struct {
	// Location is where the credentials hold: a registry with or without scheme, port and path. Parts of its
	// host name may be globs.
	Location string
	Auth     cri.Auth
}

// location is the place of an entry in its normal form.
type location struct {
	host, port, path string
}

// dockerHub is the one name for the registry that has several.
const dockerHub = "docker.io"

// parseLocation brings the forms that people write into the normal form.
func parseLocation(text string) location {
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	address, tail, _ := strings.Cut(text, "/")
	p := location{host: address, path: "/" + tail}
	if host, port, err := net.SplitHostPort(address); err == nil {
		p.host, p.port = host, port
	}
	switch p.host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		p.host = dockerHub
	}
	return p
}

// parsePlace reads where an entry holds. An API version in front of its path belongs to the registry; in the name of an image,
// it is a part of the repository. A path that ends with a slash begins no other name.
func parsePlace(text string) location {
	p := parseLocation(text)
	for _, version := range []string{"/v1", "/v2"} {
		if strings.HasPrefix(p.path, version+"/") {
			p.path = strings.TrimPrefix(p.path, version)
			break
		}
	}
	if p.path == "/" {
		p.path = ""
	}
	return p
}

// matches reports whether the place contains an image: host parts match one by one, ports are equal, and the path
// begins the image's.
func (p location) matches(image location) bool {
	if p.port != image.port || !strings.HasPrefix(image.path, p.path) {
		return false
	}
	globs := strings.Split(p.host, ".")
	parts := strings.Split(image.host, ".")
	if len(globs) != len(parts) {
		return false
	}
	for i, glob := range globs {
		if matched, err := path.Match(glob, parts[i]); err != nil || !matched {
			return false
		}
	}
	return true
}

// globs returns 0 for a place that names one registry.
func (p location) globs() int {
	return strings.Count(p.host, "*") + strings.Count(p.host, "?") + strings.Count(p.host, "[")
}

// Match returns the credentials that hold for a full image reference: those with the longest path first, then
// those that name the registry before those with globs. Equal entries are returned once.
func Match(entries []Entry, image string) []cri.Auth {
	type match struct {
		location
		auth cri.Auth
	}
	target := parseLocation(image)
	matches := []match(nil)
	for _, e := range entries {
		if p := parsePlace(e.Location); p.matches(target) {
			matches = append(matches, match{location: p, auth: e.Auth})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.globs(), b.globs()))
	})
	var all []cri.Auth
	for _, m := range matches {
		if !slices.Contains(all, m.auth) {
			all = append(all, m.auth)
		}
	}
	return all
}
