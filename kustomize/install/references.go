package install

import (
	"cmp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// checkRegistry returns a registry as images are named with it. Errors are misuse.
func checkRegistry(registry string) (string, error) {
	registry = strings.TrimRight(registry, "/")
	if registry == "" {
		return "", nil
	}
	if strings.Contains(registry, "//") {
		return "", cli.MisuseErrorf("--registry %s: omit the scheme, as in registry.example.com/team", registry)
	}
	if _, err := name.NewRepository(registry+"/flotilla/manager", name.StrictValidation); err != nil {
		return "", cli.MisuseErrorf("--registry %s: %s", registry, err)
	}
	return registry, nil
}

// splitVersion divides TAG, DIGEST or TAG@DIGEST. Errors are misuse.
func splitVersion(text string) (tag, digest string, err error) {
	tag, digest, pinned := strings.Cut(text, "@")
	if !pinned && strings.HasPrefix(text, "sha256:") {
		tag, digest = "", text
	}
	const image = "registry.example/flotilla/manager"
	if tag != "" {
		if _, err := name.NewTag(image+":"+tag, name.StrictValidation); err != nil {
			return "", "", cli.MisuseErrorf("--version %s: %q is not a valid image tag", text, tag)
		}
	}
	if digest != "" || pinned {
		if _, err := name.NewDigest(image+"@"+digest, name.StrictValidation); err != nil {
			return "", "", cli.MisuseErrorf("--version %s: %q is not a valid digest such as sha256:...", text, digest)
		}
	}
	return tag, digest, nil
}

// tag returns the tag of the images of a feature, and their digest if one was chosen. A digest without a tag leaves them no tag.
func (s Settings) tag(feature catalog.Feature) (tag, digest string) {
	chosen, found := s.Versions[feature.Name]
	if !found {
		return feature.Version, ""
	}
	tag, digest, err := splitVersion(chosen)
	if err != nil {
		return chosen, "" // an earlier version has remembered it
	}
	return tag, digest
}

// reference returns the tag and the digest of an image. The digest of the release is known for its own registry and version; another
// registry may have an image for fewer platforms, which has another digest.
func (s Settings) reference(feature catalog.Feature, image string) (tag, digest string) {
	tag, digest = s.tag(feature)
	if _, chosen := s.Versions[feature.Name]; !chosen && s.registry() == catalog.Registry {
		digest = catalog.DigestOf(image)
	}
	return tag, digest
}

// registry returns the registry of the images; empty if none is known.
func (s Settings) registry() string { return cmp.Or(s.Registry, catalog.Registry) }

// label returns the version of a feature as the value of a label: the tag without the parts that a label may not have, or
// the version of the manifests.
func (s Settings) label(feature catalog.Feature) string {
	const most = 63
	tag, _ := s.tag(feature)
	tag = strings.Trim(tag[:min(len(tag), most)], "_-.")
	if tag == "" {
		return feature.Version
	}
	return tag
}
