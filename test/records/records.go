package records

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/test/cluster"
)

// Machine describes the machine of a run.
type Machine struct {
	// Platform is such as linux/amd64.
	Platform string `json:"platform"`
	// Cores is the number of cores.
	Cores int `json:"cores"`
	// Kubernetes is the release of the control plane, such as 1.37.2.
	Kubernetes string `json:"kubernetes"`
}

// ThisMachine returns the machine that the process runs on, with the release of Kubernetes that its clusters have.
func ThisMachine() Machine {
	return Machine{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), cmp.Or(os.Getenv(cluster.KubernetesVariable), cluster.DefaultKubernetes)}
}

// Commit returns the commit of the work tree, with the suffix -dirty if the tree differs from it.
func Commit(ctx context.Context, root string) (string, error) {
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
	describe.Dir = root
	out, err := describe.Output()
	if err != nil {
		return "", fmt.Errorf("find the commit of the work tree: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Short returns the first digits of a commit, with its suffix.
func Short(commit string) string {
	digits, suffix, dirty := strings.Cut(commit, "-")
	digits = digits[:min(len(digits), 12)]
	if dirty {
		return digits + "-" + suffix
	}
	return digits
}

// Write writes the record of a run into the folder, under a name of its date and commit, and returns the file.
func Write(folder string, date time.Time, commit string, record any) (string, error) {
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the record: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of records: %w", err)
	}
	file := filepath.Join(folder, date.Format("20060102T150405Z")+"-"+Short(commit)+".json")
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write the record: %w", err)
	}
	return file, nil
}

// Read reads the file of a record into it.
func Read(file string, record any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a record: %w", err)
	}
	if err := json.Unmarshal(text, record); err != nil {
		return fmt.Errorf("decode record %s: %w", file, err)
	}
	return nil
}

// Publish replaces the part of the page, a path in the repository, that the command publishes: the lines between
// "<!-- COMMAND publish: run -->" and "<!-- end of run -->".
func Publish(root, page, command, part string) error {
	begin := "<!-- " + command + " publish: run -->\n"
	end := "<!-- end of run -->\n"
	file := filepath.Join(root, page)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the page of the record: %w", err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s: the lines %q and %q are required", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+part+"\n"+end+after), 0o644)
}
