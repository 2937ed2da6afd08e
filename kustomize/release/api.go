package release

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// breakingPrefix begins an item of a changelog that tells of a breaking change.
const breakingPrefix = "**Breaking:** "

// Incompatible are the changes of a module that programs which import its last release may not compile with.
type Incompatible struct {
	Module, Version string
	Changes         []string
}

// Unannounced returns the modules with incompatible changes that no breaking note tells of: without one, the release would
// go out as a fix or a feature. Exported names of internal packages and of commands do not count. A module without a release
// has no users yet.
func Unannounced(ctx context.Context, root string) ([]Incompatible, error) {
	modules, err := Read(ctx, root)
	if err != nil {
		return nil, err
	}
	var found []Incompatible
	for _, m := range modules {
		told, err := m.breaks(root)
		if err != nil {
			return nil, err
		}
		if m.Version == "" || len(m.Changed) == 0 || told {
			continue
		}
		changes, err := m.incompatible(ctx, root)
		if err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", m.Folder, m.Version, err)
		}
		if len(changes) > 0 {
			found = append(found, Incompatible{Module: m.Folder, Version: m.Version, Changes: changes})
		}
	}
	return found, nil
}

// breaks reports whether a note, or the changelog of a version that has no tag yet, tells of a breaking change.
func (m Module) breaks(root string) (bool, error) {
	if slices.ContainsFunc(m.Notes, func(n Note) bool { return n.Kind == Breaking }) {
		return true, nil
	}
	version, section, err := newestSection(root, m.Folder)
	return semver.Compare(version, m.Version) > 0 && strings.Contains(section, breakingPrefix), err
}

// incompatible returns the incompatible changes of the module since its last release.
func (m Module) incompatible(ctx context.Context, root string) (changes []string, err error) {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	tree := filepath.Join(scratch, "tree")
	if _, err := git(ctx, root, "worktree", "add", "--quiet", "--detach", tree, m.Folder+"/"+m.Version); err != nil {
		return nil, err
	}
	defer func() {
		_, gone := git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", tree)
		err = errors.Join(err, gone)
	}()
	before, err := exported(ctx, filepath.Join(tree, m.Folder))
	if err != nil {
		return nil, err
	}
	now, err := exported(ctx, filepath.Join(root, m.Folder))
	if err != nil {
		return nil, err
	}
	for _, change := range apidiff.ModuleChanges(before, now).Changes {
		if !change.Compatible {
			changes = append(changes, change.Message)
		}
	}
	return changes, nil
}

// exported loads the packages of a module that other modules can import.
func exported(ctx context.Context, folder string) (*apidiff.Module, error) {
	all, err := packages.Load(&packages.Config{
		Context: ctx,
		Dir:     folder,
		Env:     append(os.Environ(), "GOWORK=off"),
		Mode:    packages.NeedName | packages.NeedTypes | packages.NeedModule,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the packages: %w", err)
	}
	m := &apidiff.Module{}
	for _, p := range all {
		for _, fault := range p.Errors {
			return nil, fmt.Errorf("load package %s: %w", p.PkgPath, fault)
		}
		if p.Name != "main" && !isInternal(p.PkgPath) {
			m.Path = p.Module.Path
			m.Packages = append(m.Packages, p.Types)
		}
	}
	slices.SortFunc(m.Packages, func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) })
	return m, nil
}

func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }
