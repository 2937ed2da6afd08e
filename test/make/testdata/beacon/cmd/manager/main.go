// Command manager is the Beacon operator.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/beacon/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
