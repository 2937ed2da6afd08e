// Package clitest runs commands against an API server, for tests alone.
package clitest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

const assets = "KUBEBUILDER_ASSETS"

// startTimeout is long enough for a machine that builds and tests something else.
const startTimeout = 5 * time.Minute

// Administrator is the kubeconfig of an administrator; empty without an API server.
var Administrator string //nolint:gochecknoglobals // set for all tests of a package

// Nobody is the kubeconfig of a user who has no right; empty without an API server.
var Nobody string //nolint:gochecknoglobals // set for all tests of a package

// Main runs the tests of a package with an API server, where there is one.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	catalog.Registry = "release.example" // as in a release
	if os.Getenv(assets) == "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "flotilla")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder:", err)
		return 1
	}
	defer os.RemoveAll(folder)
	environment := &envtest.Environment{ControlPlaneStartTimeout: startTimeout}
	if err := withoutMigrations(environment.ControlPlane.GetAPIServer()); err != nil {
		fmt.Fprintln(os.Stderr, "ask the API server for its version:", err)
		return 1
	}
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer func() { _ = environment.Stop() }()
	for file, user := range map[*string]envtest.User{
		&Administrator: {Name: "admin", Groups: []string{"system:masters"}}, &Nobody: {Name: "nobody"},
	} {
		added, err := environment.AddUser(user, config)
		if err == nil {
			var text []byte
			text, err = added.KubeConfig()
			*file = filepath.Join(folder, user.Name)
			if err == nil {
				err = os.WriteFile(*file, text, 0o600)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "add a user:", err)
			return 1
		}
	}
	return m.Run()
}

// withoutMigrations has the API server serve no StorageVersionMigrations: no controller ends them here, and how many writes a
// takeover makes would depend on the release. Releases before 1.37 serve none by default, and do not know the version.
func withoutMigrations(server *envtest.APIServer) error {
	said, err := exec.Command(filepath.Join(os.Getenv(assets), "kube-apiserver"), "--version").Output() //nolint:noctx // it ends at once
	if err != nil {
		return err
	}
	release, err := version.ParseGeneric(strings.TrimSpace(strings.TrimPrefix(string(said), "Kubernetes ")))
	if err != nil {
		return err
	}
	if release.AtLeast(version.MajorMinor(1, 37)) {
		server.Configure().Set("runtime-config", "storagemigration.k8s.io/v1=false")
	}
	return nil
}

// NeedsServer skips a test without an API server.
func NeedsServer(t *testing.T) {
	t.Helper()
	switch {
	case Administrator != "":
	case os.Getenv("CI") != "":
		t.Fatal(assets + " does not name the folder of etcd and kube-apiserver")
	default:
		t.Skip(assets + " does not name the folder of etcd and kube-apiserver")
	}
}

// Commands make the commands that a package has.
type Commands []func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams) *cobra.Command

// Call runs flotilla, as far as it has the commands, as the user of the kubeconfig.
func (c Commands) Call(t *testing.T, kubeconfig string, args ...string) (output string, code cli.Code) {
	t.Helper()
	return c.CallWatched(t, kubeconfig, func(string) {}, args...)
}

// watched calls a function with each piece that is written.
type watched struct {
	bytes.Buffer
	wrote func(string)
}

func (w *watched) Write(piece []byte) (int, error) {
	w.wrote(string(piece))
	return w.Buffer.Write(piece)
}

// CallWatched runs flotilla as Call does. It calls the function with each piece of output, and the command then continues.
func (c Commands) CallWatched(t *testing.T, kubeconfig string, wrote func(string), args ...string) (output string, code cli.Code) {
	t.Helper()
	out := watched{wrote: wrote}
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}
	flags := genericclioptions.NewConfigFlags(true)
	cache := t.TempDir()
	flags.KubeConfig, flags.CacheDir = &kubeconfig, &cache
	root := &cobra.Command{Use: "flotilla"}
	root.SetOut(&out)
	root.SetErr(&out)
	for _, command := range c {
		root.AddCommand(command(flags, streams))
	}
	root.SetArgs(args)
	code = cli.Run(context.WithoutCancel(t.Context()), root) // cleanups call commands, too
	return out.String(), code
}

// Objects returns a client that reads the objects which the commands wrote.
func Objects(t *testing.T) *dynamic.DynamicClient {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &Administrator
	config, err := flags.ToRESTConfig()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(apply.Repeating(config))
	require.NoError(t, err)
	return client
}
