// Command manager is the manager of jobs.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/jobs/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
