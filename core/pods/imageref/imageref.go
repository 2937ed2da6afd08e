package imageref

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Ref is an image as NodeImages store it. Two references of the same image are equal.
type Ref struct {
	// Name is without docker.io and its library/.
	Name string
	// Tag is a tag or a digest such as sha256:... .
	Tag string
}

// Parse reads a reference as users write it. Without tag and digest the tag is latest; with both the digest counts. It
// returns an error if the text is no reference.
func Parse(image string) (Ref, error) {
	named, err := reference.ParseNormalizedNamed(image)
	switch {
	case errors.Is(err, reference.ErrReferenceInvalidFormat):
		return Ref{}, fmt.Errorf("image %q: %w", image, err)
	case err != nil:
		return Ref{}, fmt.Errorf("image %q: %w: %w", image, reference.ErrReferenceInvalidFormat, err)
	}
	ref := Ref{Name: reference.FamiliarName(named)}
	switch tagged := reference.TagNameOnly(named).(type) {
	case reference.Digested:
		ref.Tag = tagged.Digest().String()
	case reference.Tagged:
		ref.Tag = tagged.Tag()
	}
	return ref, nil
}

// IsDigest reports whether Tag is a digest. No tag contains a colon.
func (r Ref) IsDigest() bool { return strings.Contains(r.Tag, ":") }

// String is the short form, such as nginx:latest or registry.example/a@sha256:... .
func (r Ref) String() string {
	if r.IsDigest() {
		return r.Name + "@" + r.Tag
	}
	return r.Name + ":" + r.Tag
}

// CRI is the reference for a container runtime, which gets the registry in full. It returns an error if the name or the
// tag is invalid.
func (r Ref) CRI() (string, error) {
	named, err := reference.ParseNormalizedNamed(r.String())
	if err != nil {
		return "", fmt.Errorf("image %q: %w", r, err)
	}
	return named.String(), nil
}
