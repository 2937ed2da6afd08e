package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// The wrapper that drops seccomp profiles is this package's command under the name wrapperName; the program it executes
// stands beside it as wrappedName.
const (
	wrapperName = "runc"
	wrappedName = "runc-without-seccomp"
)

// runtimeChoice is the program that runs containers.
type runtimeChoice struct {
	path string
	// plain is set if path was built here. Then it does not support seccomp, and must be wrapped.
	plain bool
	// folder is where it was built; empty for the machine's own.
	folder string
}

// chooseRunc prefers the machine's runc, then the distribution's package. It builds runc only if there is neither,
// because seccomp needs a C library that is in no Go module.
func chooseRunc(ctx context.Context, options Options) (runtimeChoice, error) {
	if path := installedRunc(ctx, options); path != "" {
		return runtimeChoice{path: path}, nil
	}
	b := newBuilder(options)
	wanted := runcRecipe()
	if err := b.run(ctx, []recipe{wanted}); err != nil {
		return runtimeChoice{}, fmt.Errorf("build runc: %w", err)
	}
	fmt.Fprintln(options.Out, "note: this runc was built without libseccomp, so pods' seccomp profiles are dropped")
	folder := filepath.Join(b.root, wanted.folder)
	return runtimeChoice{
		path:   filepath.Join(folder, "runc"),
		plain:  true,
		folder: folder,
	}, nil
}

// installedRunc returns the machine's runc, and installs it first if possible. It is empty if runc must be built.
func installedRunc(ctx context.Context, options Options) string {
	if options.BuildRunc {
		return ""
	}
	if path := findRunc(); path != "" {
		return path
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return ""
	}
	fmt.Fprintln(options.Out, "installing the package runc")
	if err := aptGet(ctx, "install", "-y", "--no-install-recommends", "runc"); err == nil {
		return findRunc()
	}
	// A new machine has no lists of packages yet.
	err := aptGet(ctx, "update")
	if err == nil {
		err = aptGet(ctx, "install", "-y", "--no-install-recommends", "runc")
	}
	if err != nil {
		fmt.Fprintln(options.Out, "installing runc:", err)
	}
	return findRunc()
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", args[0], err, lastLines(out, 2))
	}
	return nil
}

func findRunc() string {
	if path, err := exec.LookPath("runc"); err == nil {
		return path
	}
	for _, path := range []string{"/usr/sbin/runc", "/usr/local/sbin/runc", "/usr/bin/runc"} {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// wrapped installs the wrapper for a runc that needs it.
func (r runtimeChoice) wrapped(l layout) (runtimeChoice, error) {
	if !r.plain {
		return r, nil
	}
	folder := l.path("runc")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return r, err
	}
	wrapper := filepath.Join(folder, wrapperName)
	if err := os.Symlink(l.command(), wrapper); err != nil {
		return r, err
	}
	return runtimeChoice{path: wrapper, plain: true, folder: r.folder}, os.Symlink(r.path, filepath.Join(folder, wrappedName))
}

// runWrapped becomes the real runc, after it has dropped the seccomp profile of the container that is about to be
// created, if any. It returns only on failure.
func runWrapped(args []string) error {
	if i := slices.Index(args, "--bundle"); i >= 0 && i+1 < len(args) {
		if err := dropSeccomp(filepath.Join(args[i+1], "config.json")); err != nil {
			return fmt.Errorf("drop the seccomp profile: %w", err)
		}
	}
	path := filepath.Join(filepath.Dir(args[0]), wrappedName)
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, args, os.Environ()))
}

func dropSeccomp(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	var linux map[string]json.RawMessage
	if err := json.Unmarshal(spec["linux"], &linux); err != nil {
		return err
	}
	if linux["seccomp"] == nil {
		return nil
	}
	delete(linux, "seccomp")
	if spec["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	if data, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
