package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// pauseSource is the source of the sandbox image's program. It is embedded, so that a command that was installed
// without this repository can build it, too.
//
//go:embed cmd/pause/main.go
var pauseSource []byte

// binary is one command to build from a Go module.
type binary struct {
	name, pkg string
}

// recipe describes binaries that are built from a temporary module into a folder of their version.
type recipe struct {
	folder   string // below the folder of all binaries
	gomod    func(ctx context.Context) ([]byte, string, error)
	source   []byte // main.go of the module, if the program is not in a dependency
	cgo      bool
	binaries []binary
}

// Binaries are the folders of the binaries.
type Binaries struct {
	// Kubernetes has etcd, kube-apiserver and kubectl, which envtest needs in KUBEBUILDER_ASSETS, and the rest of the
	// control plane and the kubelet.
	Kubernetes string
	containerd string
	cni        string
	pause      string
}

// Scope is how much to build.
type Scope int

const (
	// Everything is what a cluster with real nodes needs.
	Everything Scope = iota
	// ControlPlane is what a simulated cluster needs.
	ControlPlane
	// Envtest is etcd, kube-apiserver and kubectl.
	Envtest
)

// Build builds the binaries of a scope that are not in the cache yet, and returns their folders. Only one process
// builds at a time; others wait, unless the cache has all that they need.
func Build(ctx context.Context, options Options, scope Scope) (Binaries, error) {
	options, err := options.complete()
	if err != nil {
		return Binaries{}, err
	}
	b := newBuilder(options)
	recipes := recipesFor(options, scope)
	if !b.has(recipes) {
		unlock, err := lockFile(ctx, filepath.Join(options.Cache, "build.lock"), func() {
			fmt.Fprintln(options.Out, "waiting for another build to end")
		})
		if err != nil {
			return Binaries{}, err
		}
		defer unlock()
		if err := b.run(ctx, recipes); err != nil {
			return Binaries{}, err
		}
	}
	result := Binaries{Kubernetes: filepath.Join(b.root, recipes[0].folder)}
	if scope == Everything {
		result.containerd = filepath.Join(b.root, recipes[1].folder)
		result.cni = filepath.Join(b.root, recipes[2].folder)
		result.pause = filepath.Join(b.root, recipes[3].folder, "pause")
	}
	return result, nil
}

// Built reports whether the cache has all binaries of the scope.
func Built(options Options, scope Scope) bool {
	options, err := options.complete()
	if err != nil {
		return false
	}
	return newBuilder(options).has(recipesFor(options, scope))
}

func recipesFor(options Options, scope Scope) []recipe {
	recipes := []recipe{kubernetesRecipe(options.Kubernetes, scope)}
	if scope == Everything {
		recipes = append(recipes, containerdRecipe(), cniRecipe(), pauseRecipe())
	}
	return recipes
}

func kubernetesRecipe(version string, scope Scope) recipe {
	names := []string{"kube-apiserver", "kubectl"}
	if scope != Envtest {
		names = append(names, "kube-controller-manager", "kube-scheduler")
	}
	if scope == Everything {
		names = append(names, "kubelet")
	}
	r := recipe{
		folder: "kubernetes-" + strings.TrimPrefix(version, "v"),
		gomod: func(ctx context.Context) ([]byte, string, error) {
			release, err := loadRelease(ctx, version)
			return release.buildModule(), release.linkerFlags(), err
		},
		binaries: []binary{{"etcd", etcdServerModule}},
	}
	for _, name := range names {
		r.binaries = append(r.binaries, binary{name, kubernetesModule + "/cmd/" + name})
	}
	return r
}

func containerdRecipe() recipe {
	const module = "github.com/containerd/containerd/v2"
	r := recipe{
		folder: "containerd-" + strings.TrimPrefix(containerdVersion, "v"),
		gomod:  requireOnly(module, containerdVersion, "-s -w -X "+module+"/version.Version="+containerdVersion),
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		r.binaries = append(r.binaries, binary{name, module + "/cmd/" + name})
	}
	return r
}

// cniRecipe returns the recipe of the CNI plugins that need no firewall tool on the machine.
func cniRecipe() recipe {
	const module = "github.com/containernetworking/plugins"
	return recipe{
		folder: "cni-plugins-" + strings.TrimPrefix(cniPluginsVersion, "v"),
		gomod:  requireOnly(module, cniPluginsVersion, "-s -w"),
		binaries: []binary{
			{"bridge", module + "/plugins/main/bridge"},
			{"loopback", module + "/plugins/main/loopback"},
			{"host-local", module + "/plugins/ipam/host-local"},
		},
	}
}

func runcRecipe() recipe {
	const module = "github.com/opencontainers/runc"
	return recipe{
		folder:   "runc-" + strings.TrimPrefix(runcVersion, "v"),
		gomod:    requireOnly(module, runcVersion, "-s -w -X main.version="+strings.TrimPrefix(runcVersion, "v")),
		cgo:      true, // entering namespaces is written in C
		binaries: []binary{{"runc", module}},
	}
}

func pauseRecipe() recipe {
	return recipe{
		folder:   fmt.Sprintf("pause-%x", sha256.Sum256(pauseSource))[:18],
		gomod:    requireOnly("", "", "-s -w"),
		source:   pauseSource,
		binaries: []binary{{"pause", "."}},
	}
}

// requireOnly returns the go.mod of a build module with one dependency, or with none. Its go line is that of this
// package's module.
func requireOnly(module, version, linkerFlags string) func(context.Context) ([]byte, string, error) {
	return func(context.Context) ([]byte, string, error) {
		text := "module build\n\ngo 1.26.0\n"
		if module != "" {
			text += fmt.Sprintf("\nrequire %s %s\n", module, version)
		}
		return []byte(text), linkerFlags, nil
	}
}

// builder runs recipes below one folder.
type builder struct {
	root string
	out  io.Writer
}

func newBuilder(options Options) builder {
	return builder{root: filepath.Join(options.Cache, "bin", runtime.GOOS+"-"+runtime.GOARCH), out: options.Out}
}

func (b builder) has(recipes []recipe) bool {
	return !slices.ContainsFunc(recipes, func(r recipe) bool { return len(b.missing(r)) > 0 })
}

func (b builder) missing(r recipe) []binary {
	return slices.DeleteFunc(slices.Clone(r.binaries), func(c binary) bool {
		_, err := os.Stat(filepath.Join(b.root, r.folder, c.name))
		return err == nil
	})
}

func (b builder) run(ctx context.Context, recipes []recipe) error {
	for _, r := range recipes {
		missing := b.missing(r)
		if len(missing) == 0 {
			continue
		}
		if err := b.cook(ctx, r, missing); err != nil {
			return err
		}
	}
	return nil
}

// cook writes the build module and builds the missing binaries one at a time, so that the time of each can be reported.
func (b builder) cook(ctx context.Context, r recipe, missing []binary) error {
	target := filepath.Join(b.root, r.folder)
	module := filepath.Join(b.root, ".build-"+r.folder)
	for _, folder := range []string{target, module} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make build folder: %w", err)
		}
	}
	defer os.RemoveAll(module)
	gomod, linkerFlags, err := r.gomod(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), gomod, 0o644); err != nil {
		return err
	}
	if r.source != nil {
		if err := os.WriteFile(filepath.Join(module, "main.go"), r.source, 0o644); err != nil {
			return err
		}
	}
	for i, c := range missing {
		began := time.Now()
		fmt.Fprintf(b.out, "build %s: %s (%d of %d)\n", r.folder, c.name, i+1, len(missing))
		if err := goBuild(ctx, module, filepath.Join(target, c.name), c.pkg, linkerFlags, r.cgo); err != nil {
			return fmt.Errorf("build %s of %s: %w", c.name, r.folder, err)
		}
		fmt.Fprintf(b.out, "built %s in %s\n", c.name, seconds(began))
	}
	return nil
}

// goBuild builds a package into a file that appears only when it is complete. The go command completes go.mod and
// go.sum of the build module itself (-mod=mod).
func goBuild(ctx context.Context, folder, output, pkg, linkerFlags string, cgo bool) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", linkerFlags, "-o", output+".new", pkg)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
	if pkg == "." {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0") // for images, which have no C library
	}
	if cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, saidByGo(out))
	}
	return os.Rename(output+".new", output)
}

// saidByGo returns what the go command said when it failed: all of it, but for the modules that it downloaded.
func saidByGo(out []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "go: downloading ") }), "\n")
}

// lastLines returns the end of a program's output, which has the reason of its failure.
func lastLines(out []byte, n int) string {
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func seconds(since time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(since).Seconds())
}
