package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Rehearsal is a release of a copy of a work tree, with its commands, for the platform of this machine.
type Rehearsal struct {
	// Root is the folder of go.work. The copy has its files with all changes, and none of its tags: each module has its first release.
	Root string
	// Output is the folder of the release, which must not exist.
	Output string
	// Registry gets the images.
	Registry string
	// Only are the modules to build. Default: all.
	Only []string
	// Out gets the output of the commands.
	Out io.Writer
}

// Rehearse prepares, builds, pushes and tags the release, and checks its sums.
func (r Rehearsal) Rehearse(ctx context.Context) error {
	copied, err := os.MkdirTemp("", "rehearsal")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(copied)
	if err := r.copyTo(ctx, copied); err != nil {
		return fmt.Errorf("copy the work tree: %w", err)
	}
	output, err := filepath.Abs(r.Output)
	if err != nil {
		return err
	}
	for _, step := range [][]string{
		{"git", "init", "--quiet"},
		{"git", "add", "--all"},
		{"git", "commit", "--quiet", "--message", "the work tree"},
		{"make", "release-prepare"},
		{"git", "add", "--all"},
		{"git", "commit", "--quiet", "--message", "the release"},
		{
			"make", "release", "TO=" + output, "REGISTRY=" + r.Registry, "PUSH=1", "ONLY=" + strings.Join(r.Only, ","),
			"PLATFORMS=linux/" + runtime.GOARCH, "MACHINES=" + runtime.GOOS + "/" + runtime.GOARCH,
		},
		{"make", "release-tag"},
	} {
		if err := r.command(ctx, copied, step...); err != nil {
			return err
		}
	}
	return r.check(ctx, output)
}

// copyTo copies the files that git knows or would add.
func (r Rehearsal) copyTo(ctx context.Context, folder string) error {
	list := exec.CommandContext(ctx, "git", "-C", r.Root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(r.Root, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file that has not been deleted.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // as the work tree
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// command runs a command in a folder. Its commits have an author of their own.
func (r Rehearsal) command(ctx context.Context, folder string, words ...string) error {
	fmt.Fprintf(r.Out, "$ %s\n", strings.Join(words, " "))
	command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the commands of a release
	command.Dir = folder
	command.Stdout = r.Out
	command.Stderr = r.Out
	// make tells its children about itself, and tests of a module run without the workspace.
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") || strings.HasPrefix(v, "GOWORK=")
	})
	command.Env = append(command.Env, "GIT_AUTHOR_NAME=rehearsal", "GIT_AUTHOR_EMAIL=rehearsal@example.com", "GIT_COMMITTER_NAME=rehearsal",
		"GIT_COMMITTER_EMAIL=rehearsal@example.com", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return nil
}

// check checks the sums of each release, as a user does after a download.
func (r Rehearsal) check(ctx context.Context, output string) error {
	sums, err := filepath.Glob(filepath.Join(output, "*", sumsName))
	if err != nil {
		return fmt.Errorf("look for sums: %w", err)
	}
	if len(sums) == 0 {
		return fmt.Errorf("check the release: no folder of %s has a file %s", output, sumsName)
	}
	for _, file := range sums {
		if err := r.command(ctx, filepath.Dir(file), "sha256sum", "--check", "--quiet", sumsName); err != nil {
			return fmt.Errorf("check %s: %w", filepath.Base(filepath.Dir(file)), err)
		}
	}
	return nil
}
