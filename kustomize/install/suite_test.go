package install_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// call runs flotilla as somebody who has the kubeconfig, as far as this package has commands.
func call(t *testing.T, kubeconfig string, args ...string) (output string, code cli.Code) {
	t.Helper()
	return clitest.Commands{install.NewCommand, install.NewUninstallCommand}.Call(t, kubeconfig, args...)
}

// remove uninstalls features, so that other tests do not find them. Flags of uninstall may follow their names.
func remove(t *testing.T, args ...string) {
	t.Helper()
	output, code := call(t, clitest.Administrator, append([]string{"uninstall"}, args...)...)
	assert.Equal(t, cli.Done, code, output)
}

// collectGarbage plays the garbage collector for objects of a resource whose deletion waits for their dependents: there are
// none. It returns the objects that it has let go; the call ends the play.
func collectGarbage(t *testing.T, resource dynamic.NamespaceableResourceInterface) (collected func() []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	names := make(chan []string)
	go func() {
		var gone []string
		defer func() { names <- gone }()
		_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := resource.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil //nolint:nilerr // the kind is served no longer, or the play ends
			}
			for _, object := range list.Items {
				if !slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
					continue
				}
				_, err := resource.Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				if err == nil {
					gone = append(gone, object.GetNamespace()+"/"+object.GetName())
				}
			}
			return false, nil
		})
	}()
	return func() []string {
		stop()
		return <-names
	}
}
