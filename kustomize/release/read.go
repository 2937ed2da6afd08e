package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// repository begins the paths of all modules.
const repository = "github.com/flotilla-project/flotilla/"

// Read returns the modules of the workspace in the folder as the commit HEAD has them.
func Read(ctx context.Context, root string) ([]Module, error) {
	all, err := workspace(root)
	if err != nil {
		return nil, err
	}
	released := slices.DeleteFunc(slices.Clone(all), untagged)
	var modules []Module
	for _, folder := range released {
		m := Module{Folder: folder}
		if m.Requires, err = requires(root, folder, released); err != nil {
			return nil, err
		}
		if m.Version, err = newest(ctx, root, folder); err != nil {
			return nil, err
		}
		if m.Changed, err = changed(ctx, root, m, all); err != nil {
			return nil, err
		}
		if m.Notes, err = notes(filepath.Join(root, folder)); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// untagged reports whether the module in the folder is never released: its packages are no part of a product.
func untagged(folder string) bool {
	return folder == "kustomize/release" || folder == "test" || strings.HasPrefix(folder, "test/")
}

// workspace returns the folders of all modules.
func workspace(root string) ([]string, error) {
	file := filepath.Join(root, "go.work")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	work, err := modfile.ParseWork(file, data, nil)
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w", err)
	}
	var folders []string
	for _, use := range work.Use {
		folders = append(folders, path.Clean(use.Path))
	}
	return folders, nil
}

func requires(root, folder string, folders []string) ([]string, error) {
	file := filepath.Join(root, folder, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", folder, err)
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", folder, err)
	}
	var found []string
	for _, r := range mod.Require {
		if name, ours := strings.CutPrefix(r.Mod.Path, repository); ours && slices.Contains(folders, name) {
			found = append(found, name)
		}
	}
	return found, nil
}

// newest returns the newest version among the module's tags, or an empty string.
func newest(ctx context.Context, root, folder string) (string, error) {
	tags, err := git(ctx, root, "tag", "--merged", "HEAD", "--list", folder+"/v*")
	if err != nil {
		return "", fmt.Errorf("list the tags of %s: %w", folder, err)
	}
	version := ""
	for _, tag := range tags {
		if v := strings.TrimPrefix(tag, folder+"/"); semver.IsValid(v) && semver.Compare(v, version) > 0 {
			version = v
		}
	}
	return version, nil
}

// changed returns what has changed in the module since its last release, apart from tests and pages. Folders has all modules: the files
// of a module within another one are its own.
func changed(ctx context.Context, root string, m Module, folders []string) ([]string, error) {
	list := []string{"ls-files"}
	if m.Version != "" {
		list = []string{"diff", "--name-only", m.Folder + "/" + m.Version, "HEAD"}
	}
	files, err := git(ctx, root, append(list, "--", m.Folder)...)
	if err != nil {
		return nil, fmt.Errorf("list the changes of %s: %w", m.Folder, err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		other := slices.ContainsFunc(folders, func(folder string) bool {
			return strings.HasPrefix(folder, m.Folder+"/") && strings.HasPrefix(file, folder+"/")
		})
		return other || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".md") || strings.Contains(file, "/testdata/")
	}), nil
}

// git returns the lines that a git command prints.
func git(ctx context.Context, root string, args ...string) ([]string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("git %s: %w", args[0], err), errors.New(strings.TrimSpace(said.String())))
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
