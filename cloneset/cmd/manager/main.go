// Command manager is the CloneSet operator.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/manager"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
