package takeover_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/health"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/takeover"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// call runs flotilla as somebody who has the kubeconfig, as far as this package has commands.
func call(t *testing.T, kubeconfig string, args ...string) (output string, code cli.Code) {
	t.Helper()
	return commands().Call(t, kubeconfig, args...)
}

func commands() clitest.Commands {
	return clitest.Commands{health.NewDoctorCommand, health.NewStatusCommand, install.NewCommand, install.NewUninstallCommand, takeover.NewCommand}
}
