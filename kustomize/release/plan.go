package release

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// first is the version of a module that was never released.
const first = "v0.1.0"

// Kind is how much a release changes for users of its module. A higher one includes the lower ones.
type Kind int

const (
	// None is no release.
	None Kind = iota
	// Follow is the release of a module that did not change but requires a module that is released.
	Follow
	// Fix changes nothing that users rely on.
	Fix
	// Feature adds something.
	Feature
	// Breaking asks users to do something.
	Breaking
)

func words() []string { return []string{"none", "follow", "fix", "feature", "breaking"} }

func (k Kind) String() string { return words()[k] }

// MarshalText writes the kind as its word.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Note tells users of one change.
type Note struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Module is a module of the workspace since its last release.
type Module struct {
	// Folder is its path in the repository, and the beginning of its tags.
	Folder string
	// Requires are the folders of the modules of the workspace that its go.mod requires.
	Requires []string
	// Version is the version of the last release; empty if there is none.
	Version string
	// Changed are the files that differ from the last release.
	Changed []string
	// Notes are those not yet released.
	Notes []Note
}

// Release is a module's next release.
type Release struct {
	Module string `json:"module"`
	From   string `json:"from,omitempty"`
	To     string `json:"to"`
	Kind   Kind   `json:"kind"`
	// Follows are the modules that make this release necessary, because they are released.
	Follows []string `json:"follows,omitempty"`
	Notes   []Note   `json:"notes,omitempty"`
	// Warning names a part that the release lacks.
	Warning string `json:"warning,omitempty"`
}

// Tag is the name of the release's tag.
func (r Release) Tag() string { return r.Module + "/" + r.To }

// Plan returns the modules to release, each after those that it requires. A module is released if files of it have
// changed, or if a module that it requires is released: its go.mod then names the new version. It returns an error if
// modules require each other, and if a change breaks a module of major version 1 or above, because its next major version needs a
// module path of its own (https://go.dev/ref/mod#major-version-suffixes).
func Plan(modules []Module) ([]Release, error) {
	ordered, err := sorted(modules)
	if err != nil {
		return nil, err
	}
	var plan []Release
	for _, m := range ordered {
		r := Release{
			Module: m.Folder,
			From:   m.Version,
			Notes:  m.Notes,
			Kind:   m.kind(),
		}
		for _, earlier := range plan {
			if slices.Contains(m.Requires, earlier.Module) {
				r.Follows = append(r.Follows, earlier.Module)
			}
		}
		if len(r.Follows) > 0 {
			r.Kind = max(r.Kind, Follow)
		}
		if r.Kind == None {
			continue
		}
		if r.Kind != Follow && len(r.Notes) == 0 {
			r.Warning = "no note tells what has changed"
		}
		if r.To, err = next(m.Version, r.Kind); err != nil {
			return nil, fmt.Errorf("release %s: %w", m.Folder, err)
		}
		plan = append(plan, r)
	}
	return plan, nil
}

// kind returns the largest kind of the module's notes; changed files without notes are a fix.
func (m Module) kind() Kind {
	if m.Version == "" {
		return Feature
	}
	if len(m.Changed) == 0 {
		return None
	}
	kind := Fix
	for _, note := range m.Notes {
		kind = max(kind, note.Kind)
	}
	return kind
}

// next returns the version after that one. Before version 1 a breaking change raises the minor version.
func next(version string, kind Kind) (string, error) {
	if version == "" {
		return first, nil
	}
	var numbers [3]int
	for i, text := range strings.Split(strings.TrimPrefix(semver.Canonical(version), "v"), ".") {
		n, err := strconv.Atoi(text)
		if err != nil || i > 2 {
			return "", fmt.Errorf("version %q is none of a release", version)
		}
		numbers[i] = n
	}
	switch {
	case kind == Breaking && numbers[0] > 0:
		return "", fmt.Errorf("a breaking change after %s needs a module path with the next major version", version)
	case kind >= Feature:
		numbers[1], numbers[2] = numbers[1]+1, 0
	default:
		numbers[2]++
	}
	return fmt.Sprintf("v%d.%d.%d", numbers[0], numbers[1], numbers[2]), nil
}

// sorted returns the modules by name, each after those that it requires.
func sorted(modules []Module) ([]Module, error) {
	waiting := slices.SortedFunc(slices.Values(modules), func(a, b Module) int { return strings.Compare(a.Folder, b.Folder) })
	var ordered []Module
	for len(waiting) > 0 {
		ready := slices.IndexFunc(waiting, func(m Module) bool {
			return !slices.ContainsFunc(waiting, func(other Module) bool { return slices.Contains(m.Requires, other.Folder) })
		})
		if ready < 0 {
			return nil, fmt.Errorf("order the modules: %s and others require each other", waiting[0].Folder)
		}
		ordered = append(ordered, waiting[ready])
		waiting = slices.Delete(waiting, ready, ready+1)
	}
	return ordered, nil
}
