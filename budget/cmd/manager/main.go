// Command manager is the manager of budgets.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
