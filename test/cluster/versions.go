package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// Versions of what is not part of a Kubernetes release.
const (
	containerdVersion = "v2.4.2"
	cniPluginsVersion = "v1.9.1"
	runcVersion       = "v1.5.2"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdClientModule = "go.etcd.io/etcd/client/v3"
	etcdServerModule = "go.etcd.io/etcd/server/v3"
)

// release has what the go.mod of a Kubernetes release says about its build.
type release struct {
	version  string   // v1.37.2
	language string   // its go line: 1.26.0
	etcd     string   // v3.7.0
	staging  []string // modules it requires at v0.0.0, published as v0.37.2
}

// loadRelease reads the go.mod of a Kubernetes release with the go command.
func loadRelease(ctx context.Context, version string) (release, error) {
	version = "v" + strings.TrimPrefix(version, "v")
	folder, err := os.MkdirTemp("", "flotilla-release-")
	if err != nil {
		return release{}, fmt.Errorf("make a folder to download to: %w", err)
	}
	defer os.RemoveAll(folder)
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", kubernetesModule+"@"+version)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, runErr := cmd.Output() // the output has the reason for a failure
	var answer struct{ GoMod, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return release{}, fmt.Errorf("download Kubernetes %s: %w", version, errors.Join(runErr, err))
	}
	if answer.Error != "" {
		return release{}, fmt.Errorf("download Kubernetes %s: %s", version, answer.Error)
	}
	mod, err := os.ReadFile(filepath.Clean(answer.GoMod))
	if err != nil {
		return release{}, fmt.Errorf("read the go.mod of Kubernetes %s: %w", version, err)
	}
	return parseRelease(version, mod)
}

// parseRelease reads a release's go.mod. A staging module is a module that a replace directive maps to the release's
// own staging folder.
func parseRelease(version string, mod []byte) (release, error) {
	file, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return release{}, fmt.Errorf("parse the go.mod of Kubernetes %s: %w", version, err)
	}
	r := release{version: version}
	if file.Go != nil {
		r.language = file.Go.Version
	}
	for _, require := range file.Require {
		if require.Mod.Path == etcdClientModule {
			r.etcd = require.Mod.Version
		}
	}
	for _, replace := range file.Replace {
		if strings.HasPrefix(replace.New.Path, "./staging/") {
			r.staging = append(r.staging, replace.Old.Path)
		}
	}
	if r.language == "" || r.etcd == "" || len(r.staging) == 0 {
		return release{}, fmt.Errorf("the go.mod of Kubernetes %s names no Go version, etcd or staging modules", version)
	}
	return r, nil
}

// stagingVersion returns the version under which a release's staging modules are published: v0.37.2 for Kubernetes
// v1.37.2.
func (r release) stagingVersion() string {
	return "v0." + strings.TrimPrefix(r.version, "v1.")
}

// buildModule returns the go.mod of a throw-away module that builds the release's commands and etcd. Without a
// replacement for each staging module none of them resolves.
func (r release) buildModule() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "module build/kubernetes\n\ngo %s\n\nrequire (\n", r.language)
	fmt.Fprintf(&b, "\t%s %s\n\t%s %s\n)\n\nreplace (\n", etcdServerModule, r.etcd, kubernetesModule, r.version)
	for _, module := range r.staging {
		fmt.Fprintf(&b, "\t%s => %s %s\n", module, module, r.stagingVersion())
	}
	b.WriteString(")\n")
	return []byte(b.String())
}

// linkerFlags returns the flags that set the version of the release's commands. Without them a server reports
// v0.0.0-master, and clients that check the version fail.
func (r release) linkerFlags() string {
	const variable = " -X k8s.io/component-base/version."
	minor, _, _ := strings.Cut(strings.TrimPrefix(r.version, "v1."), ".")
	return "-s -w" +
		variable + "gitVersion=" + r.version +
		variable + "gitMajor=1" +
		variable + "gitMinor=" + minor +
		variable + "gitTreeState=clean" +
		variable + "gitCommit=" + r.version
}
