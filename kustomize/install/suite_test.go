package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
