// Command manager is the manager of WorkloadSpread.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
