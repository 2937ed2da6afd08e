// Command manager is the DaemonSet operator.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/daemonset/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
