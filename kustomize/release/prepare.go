package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Prepare changes the work tree to the work tree of the releases: changelogs have their sections, manifests name the version of their
// module, and each go.mod that requires a released module names its new version. The tags are of the commit of these changes.
func Prepare(root string, plan []Release, date time.Time) error {
	for _, r := range plan {
		if err := errors.Join(r.fold(root, date), r.install(root)); err != nil {
			return fmt.Errorf("prepare %s: %w", r.Tag(), err)
		}
	}
	folders, err := workspace(root)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := raise(filepath.Join(root, folder, "go.mod"), plan); err != nil {
			return fmt.Errorf("require the new versions in %s: %w", folder, err)
		}
	}
	return nil
}

// Prepared returns the releases that the work tree is prepared for and that have no tag yet: the newest version of each
// changelog.
func Prepared(ctx context.Context, root string) ([]Release, error) {
	modules, err := Read(ctx, root)
	if err != nil {
		return nil, err
	}
	var found []Release
	for _, m := range modules {
		version, _, err := newestSection(root, m.Folder)
		if err != nil {
			return nil, err
		}
		if semver.Compare(version, m.Version) > 0 {
			found = append(found, Release{Module: m.Folder, From: m.Version, To: version})
		}
	}
	return found, nil
}

// newestSection returns the newest version of a module's changelog, with its text. An empty one means that there is none.
func newestSection(root, folder string) (version, section string, err error) {
	text, err := os.ReadFile(filepath.Join(root, folder, changelog))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("read the changelog of %s: %w", folder, err)
	}
	_, _, released := split(string(text))
	section, _, _ = strings.Cut(released, "\n## ")
	version, _, _ = strings.Cut(strings.TrimPrefix(section, "## "), " ")
	if !semver.IsValid(version) {
		return "", "", nil
	}
	return version, section, nil
}

// raise has a go.mod require the released versions of the modules that it requires.
func raise(file string, plan []Release) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return err
	}
	required := map[string]bool{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = true
	}
	for _, r := range plan {
		if path := repository + r.Module; required[path] {
			if err := mod.AddRequire(path, r.To); err != nil {
				return err
			}
		}
	}
	mod.Cleanup()
	raised, err := mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(file, raised, 0o644) //nolint:gosec // readable as the rest of the work tree
}
