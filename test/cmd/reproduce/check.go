package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// timeout ends a test that hangs. That is no failed assertion.
const timeout = "10m"

// checker runs the tests of rows.
type checker struct {
	root   string // the folder of the repository, absolute
	folder string // for files of its own; the caller removes it
}

func newChecker(root string) (*checker, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "reproduce-")
	if err != nil {
		return nil, err
	}
	return &checker{root: root, folder: folder}, nil
}

// check runs the test with the fix and without it, and returns the failure of the test without the fix. It is an error if the test
// fails with the fix, or does not fail at an assertion without it. Lines after the first of the error are output.
func (c *checker) check(ctx context.Context, r row) (failure string, err error) {
	ended, output, err := c.test(ctx, r)
	if err != nil {
		return "", fmt.Errorf("with the fix: %w", err)
	}
	if ended != pass {
		return "", fmt.Errorf("with the fix: the test has result %s\n%s", ended, output)
	}
	overlay, err := c.takeOut(ctx, r)
	if err != nil {
		return "", err
	}
	ended, output, err = c.test(ctx, r, "-overlay", overlay)
	if err != nil {
		return "", fmt.Errorf("without the fix: %w", err)
	}
	if ended != fail {
		return "", fmt.Errorf("without the fix: the test has result %s\n%s", ended, output)
	}
	return output, nil
}

// Results of a test. Any other is the reason for which it has neither.
const (
	pass = "PASS"
	fail = "FAIL"
)

// test builds the tests of the package with the flags and runs the one of the row.
func (c *checker) test(ctx context.Context, r row, flags ...string) (ended, output string, err error) {
	file, name, _ := strings.Cut(r.Test, ":")
	folder := filepath.Join(c.root, filepath.FromSlash(path.Dir(file)))
	binary, err := c.build(ctx, folder, flags)
	if err != nil {
		return "", "", err
	}
	test := exec.CommandContext(ctx, binary, "-test.v", "-test.timeout="+timeout, "-test.run=^"+name+"$") //nolint:gosec // a test of a row
	test.Dir = folder
	said, err := test.CombinedOutput()
	return result(name, string(said), err), string(said), nil
}

// build builds the tests of a package, those with the fixes once for all rows.
func (c *checker) build(ctx context.Context, folder string, flags []string) (binary string, err error) {
	binary = filepath.Join(c.folder, "without.test")
	if len(flags) == 0 {
		binary = filepath.Join(c.folder, strings.ReplaceAll(strings.TrimPrefix(folder, c.root), string(filepath.Separator), "-")+".test")
		if _, err := os.Stat(binary); err == nil {
			return binary, nil
		}
	}
	arguments := append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}, flags...)
	build := exec.CommandContext(ctx, "go", append(arguments, ".")...) //nolint:gosec // a test of a row
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the test does not compile\n%s", said)
	}
	return binary, nil
}

// result returns how the test with the name has ended. A test binary exits with 1 after failed assertions, and with 2 after a panic.
func result(name, output string, err error) string {
	line := regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): ` + name + ` `).FindStringSubmatch(output)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		return err.Error()
	case err != nil && exit.ExitCode() != 1:
		return "panic"
	case line == nil:
		return "none"
	}
	return line[1]
}

// takeOut applies the patch of the row to copies of the files that it changes, and returns the file that tells the compiler to read
// these in their places.
func (c *checker) takeOut(ctx context.Context, r row) (overlay string, err error) {
	patch := filepath.Join(c.root, testdata, r.Name+".patch")
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", fmt.Errorf("read the patch: %w", err)
	}
	folder := filepath.Join(c.folder, r.Name)
	places := map[string]string{}
	for _, name := range changed(string(text)) {
		from, to := filepath.Join(c.root, name), filepath.Join(folder, name)
		places[from] = to
		if err := copyFile(from, to); err != nil {
			return "", fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := apply(ctx, folder, patch); err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	text, err = json.Marshal(map[string]any{"Replace": places})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// changed returns the files that a patch changes.
func changed(patch string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`).FindAllStringSubmatch(patch, -1) {
		names = append(names, found[1])
	}
	return names
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// apply applies a patch to the files of a folder. A repository around the folder plays no part: git would leave out files of others.
func apply(ctx context.Context, folder, patch string, flags ...string) error {
	command := exec.CommandContext(ctx, "git", append(append([]string{"apply"}, flags...), patch)...) //nolint:gosec // a patch of a row
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch does not apply: make it again for the current code\n%s", said)
	}
	return nil
}
