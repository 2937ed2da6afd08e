// Command manager is the manager of the node agent.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/daemon/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
