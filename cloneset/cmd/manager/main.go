// Command manager is the CloneSet operator.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
